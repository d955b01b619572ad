"""The explorer of backpropagation through attention: as a page, in a terminal, in a notebook.

    trace.py        trace: keeps every tensor of every attention that runs in its block; traced.py and calls.py say
                    what is kept, recorder.py keeps it
    translation.py  explain: a trained model translates a sentence, and every step is kept
    explanation.py  Explanation: a trace with its tokens; from it the page, the text, the notebook's view
    checks.py       gradients held to finite differences of the whole model's loss
    identities.py   facts that hold in every attention
    history.py      the same sentence at each checkpoint of the training
    data.py         what the page is given: JSON with arrays in it
    page.py         the HTML, from the files in page/
    notebook.py     the page inside a notebook
    text.py         the same in a terminal; its steps are in steps.py, the sum of a cell in worked.py

    plots/          pictures: the curves of a run, who attends to whom, how much gradient reaches each layer

`explain` needs a trained translator, an `Explanation` a trace alone.
"""
