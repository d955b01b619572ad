"""The explorer of backpropagation: as a page that runs the model, in a terminal, in a notebook.

    trace.py        trace: records every tensor of every attention that runs in its block; recorder.py does the work,
                    traced.py and calls.py hold the result
    translation.py  explain: a trace of a trained model that translates a sentence
    explanation.py  Explanation: a trace with its tokens; from it the page, the text, the notebook's view
    checks.py       gradients compared with finite differences of the whole model's loss
    identities.py   facts that hold in every attention
    live.py         the whole model in the page's data, which the page then runs itself, on any text
    data.py         the page's data: JSON with arrays in it
    stories.py      what the page tells from stop to stop
    page.py         the HTML, from the files in page/: docs/design.md says how these are made
    labels.py       the names of rows and columns, everywhere
    text.py         the same in a terminal; its steps are in steps.py

    plots/          plots: the curves of a run, attention weights, the gradient norm of each layer

A page needs a trained translator, a text a trace alone.
"""
