"""The page's Content-Security-Policy: nothing but its own scripts runs, and nothing at all is fetched."""

from tests.explorer.browser import watched_page
from tests.explorer.pages import CROSS, live_explanation, show
from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer

HOSTILE = ["<img/src=http://127.0.0.1:9/onerror=ran=1>", "<script>ran=1</script>", "javascript:ran=1",
           "\"onfocus=\"ran=1\"autofocus/x=\"", "</script><script>ran=1</script>"]
PANELS = ["softmax", "checks", "flow", "heads", "steps", "step"]


def test_tokens_are_text_and_nothing_else(open_page, tmp_path):
    words = WordTokenizer.train([" ".join([*HOSTILE, "a", "b"])])
    path = tmp_path / "page.html"
    live_explanation(tiny_model(), " ".join(HOSTILE), " ".join(HOSTILE[:4]), words=words).to_html(path)
    page = open_page(path)
    elements = page.evaluate("document.querySelectorAll('img, script, [onfocus], [autofocus]').length")
    for symbol, panel in zip(["A", "dV", "dX"] * 2, PANELS, strict=True):
        show(page, place=CROSS, symbol=symbol, panel=panel, cell={"row": 1, "col": 0})
        page.locator(".tile").first.hover()
    assert page.evaluate("document.querySelectorAll('img, script, [onfocus], [autofocus]').length") == elements
    assert page.evaluate("document.body.innerText").count("onerror=ran=1") > 0
    assert page.evaluate("typeof ran") == "undefined"


ELSEWHERE = "http://127.0.0.1:9/"
PUT_IN = {  # what is done, and the directive that refuses it
    "a fetch": (f"fetch('{ELSEWHERE}').catch(() => null)", "connect-src"),
    "a socket": ("new WebSocket('ws://127.0.0.1:9/')", "connect-src"),
    "an image": (f"new Image().src = '{ELSEWHERE}'", "img-src"),
    "a handler": ("const button = add('button', {}); button.setAttribute('onclick', 'ran=1'); button.click()",
                  "script-src-attr"),
    "a script": ("add('script', {text: 'ran=1'})", "script-src-elem"),
    "a style": ("add('style', {textContent: '*{}'})", "style-src-elem"),
    "a frame": (f"add('iframe', {{src: '{ELSEWHERE}'}})", "frame-src"),
    "a base": (f"add('base', {{href: '{ELSEWHERE}'}})", "base-uri"),
    "a form": (f"add('form', {{action: '{ELSEWHERE}'}}).submit()", "form-action"),
}


def test_what_is_put_into_the_page_is_refused(browser, made):
    page = watched_page(browser, made.path, [])
    refused = page.evaluate(f"""() => new Promise((resolve) => {{
        const directives = [];
        document.addEventListener("securitypolicyviolation", (event) => {{
            if (directives.push(event.effectiveDirective) === {len(PUT_IN)}) resolve(directives);
        }});
        setTimeout(() => resolve(directives), 5000);
        const add = (tag, its) => document.body.appendChild(Object.assign(document.createElement(tag), its));
        {"; ".join(action for action, _ in PUT_IN.values())};
    }})""")
    assert sorted(refused) == sorted(directive for _, directive in PUT_IN.values())
    assert page.evaluate("typeof ran") == "undefined"
    page.context.close()
