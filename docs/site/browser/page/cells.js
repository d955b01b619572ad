// Each cell of a page gets buttons, and its code runs in the reader's browser, in worker.js.
//
// Nothing is loaded before a button is pressed. The cells share their names, as in a notebook; before a cell run those
// above it that have not run, or have changed since. Stop ends the worker, and with it all names. Where it cannot work,
// as in a page opened from disk, there are no buttons.
"use strict";

(() => {
    const script = document.currentScript;
    if (location.protocol === "file:" || !window.Worker || !window.WebAssembly) {
        return;
    }
    document.querySelectorAll(".if-runnable").forEach((element) => element.removeAttribute("hidden"));
    const shown = [...document.querySelectorAll("div.cell")]
        .filter((element) => element.querySelector(".cell_input pre"));
    if (!shown.length) {
        return;
    }

    const WORDS = {
        en: {
            about: "The code of this page runs in your browser, and can be changed. The first run loads Python and its "
                + "libraries from this site, 17 to 51 MB. Timings, and digits that rounding decides, differ from the "
                + "text.",
            trains: " Training takes up to two minutes here, and its numbers differ; a smaller UPDATES makes it short, "
                + "and wrong.",
            page: "All cells", bar: (n) => `Cell ${n}`, runAll: "Run all", restart: "Restart Python",
            run: "Run", stop: "Stop", edit: "Edit", original: "Original code",
            named: (button, n) => `${button} cell ${n}`,
            code: (n) => `Code of cell ${n}`, output: (n) => `Output of cell ${n}`,
            hint: "Tab indents; Esc and then Tab leaves the code; Shift+Enter runs the cell.",
            waiting: (n) => `waiting for cell ${n}`, starting: "loading",
            loading: (names, done, total) => `loading ${names}: ${done} of ${total} MB`,
            preparing: "preparing what was loaded", running: "running",
            ran: (s) => `ran in ${s} s`, failed: (s) => `ended with an error after ${s} s`,
            skipped: (n) => `not run, since cell ${n} ended with an error`,
            loaded: (names) => `${names} has been loaded now: run the cell again.`,
            stopped: "stopped", anew: "not run since Python was restarted", changed: "changed, not run yet",
            restarted: "Python starts anew with the next run. No cell has run.",
            broken: (why) => `Python cannot be loaded: ${why}`,
            figure: (n) => `Figure that cell ${n} has drawn`,
        },
        ja: {
            about: "このページのコードはブラウザーの中で実行でき、書き換えることもできます。最初の実行では、Pythonとライブラリ"
                + "(17〜51 MB)をこのサイトから読み込みます。計測した時間と、丸め誤差で決まる桁は、本文と異なります。",
            trains: "学習には最大2分ほどかかり、結果の数値は本文と異なります。UPDATESを小さくすると短く済みますが、正しい結果にはなりません。",
            page: "すべてのセル", bar: (n) => `セル${n}`, runAll: "すべて実行", restart: "Pythonを再起動",
            run: "実行", stop: "停止", edit: "編集", original: "元のコード",
            named: (button, n) => `${button}:セル${n}`,
            code: (n) => `セル${n}のコード`, output: (n) => `セル${n}の出力`,
            hint: "Tabで字下げ、Escの後のTabでコードから出る、Shift+Enterで実行。",
            waiting: (n) => `セル${n}の終了を待機中`, starting: "読み込み中",
            loading: (names, done, total) => `${names}を読み込み中:${done} / ${total} MB`,
            preparing: "読み込んだものを準備中", running: "実行中",
            ran: (s) => `実行済み(${s}秒)`, failed: (s) => `エラーで終了(${s}秒)`,
            skipped: (n) => `セル${n}がエラーで終了したため未実行`,
            loaded: (names) => `${names}を読み込みました。もう一度セルを実行してください。`,
            stopped: "停止しました", anew: "Pythonの再起動後は未実行", changed: "変更後は未実行",
            restarted: "次の実行でPythonが新しく始まります。実行済みのセルはありません。",
            broken: (why) => `Pythonを読み込めません:${why}`,
            figure: (n) => `セル${n}が描いた図`,
        },
    };
    const words = WORDS[document.documentElement.lang.slice(0, 2)] ?? WORDS.en;

    const make = (tag, properties = {}, ...children) => {
        const element = Object.assign(document.createElement(tag), properties);
        element.append(...children);
        return element;
    };
    const button = (text, press) => make("button", {type: "button", textContent: text, onclick: press});
    const group = (name, className, ...children) => {
        const made = make("div", {className}, ...children);
        made.setAttribute("role", "group");
        made.setAttribute("aria-label", name);
        return made;
    };
    const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

    let worker = null;
    let current = null; // the cell that the worker has
    let queue = []; // those that it gets next

    // --- A cell -----------------------------------------------------------------------------------------------

    class Cell {
        constructor(element, number) {
            this.element = element;
            this.number = number;
            this.input = element.querySelector(".cell_input");
            this.original = this.input.querySelector("pre").textContent.replace(/\n$/, "");
            this.stored = element.querySelector(".cell_output");
            this.live = null;
            this.ran = null; // the code that this Python has run

            this.runButton = button("", () => (this.busy ? restart() : run(this)));
            this.editButton = button("", () => this.edit(this.editor.hidden));
            this.state = make("span", {className: "cell-state"});
            this.editor = make("textarea", {
                className: "cell-editor", value: this.original, selectionEnd: 0, hidden: true, wrap: "off",
                spellcheck: false, autocapitalize: "off", autocomplete: "off",
                oninput: () => this.changed(), onkeydown: (event) => this.key(event),
            });
            this.editor.setAttribute("aria-label", words.code(number));
            this.hint = make("p", {className: "cell-hint", id: `cell-hint-${number}`, hidden: true}, words.hint);
            this.editor.setAttribute("aria-describedby", this.hint.id);
            this.input.after(this.editor, this.hint, group(words.bar(number), "cell-bar",
                make("span", {className: "cell-number"}, words.bar(number)),
                this.runButton, this.editButton, this.state));
            this.label(this.editButton, words.edit);
            this.say("");
        }

        get code() {
            return this.editor.hidden ? this.original : this.editor.value;
        }

        get busy() {
            return current === this || queue.includes(this);
        }

        label(made, text) {
            made.textContent = text;
            made.setAttribute("aria-label", words.named(text, this.number));
        }

        say(text) {
            this.state.textContent = text;
            this.label(this.runButton, this.busy ? words.stop : words.run);
        }

        // Between the code of the page and the reader's; the latter is kept.
        edit(on) {
            this.editor.hidden = this.hint.hidden = !on;
            this.input.hidden = on;
            this.label(this.editButton, on ? words.original : words.edit);
            this.changed();
            if (on) {
                this.editor.focus();
            }
        }

        changed() {
            this.editor.rows = this.editor.value.split("\n").length;
            if (this.ran !== null && !this.busy && this.ran !== this.code) {
                this.say(words.changed);
            }
        }

        key(event) {
            if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                run(this);
            } else if (event.key === "Escape") {
                this.leaving = true;
            } else if (event.key === "Tab" && !event.shiftKey && !this.leaving) {
                event.preventDefault();
                document.execCommand("insertText", false, "    "); // the only way that can be undone
            } else {
                this.leaving = false;
            }
        }

        begin() {
            this.ran = this.sent;
            this.say(words.running);
            this.live?.remove();
            this.live = group(words.output(this.number), "cell_output live-output");
            this.element.append(this.live);
            if (this.stored) {
                this.stored.hidden = true;
            }
        }

        add({kind, output, width}) {
            const last = this.live.lastElementChild;
            if (kind === "image") {
                const image = make("img", {alt: words.figure(this.number), width});
                image.onload = () => URL.revokeObjectURL(image.src);
                image.src = URL.createObjectURL(new Blob([output]));
                this.live.append(image);
            } else if (kind === "html") {
                this.live.append(make("div", {className: "html", innerHTML: output}));
            } else if ((kind === "out" || kind === "err") && last?.className === kind) {
                last.append(output);
            } else {
                const text = make("pre", {className: kind}, output);
                text.tabIndex = 0; // long lines are scrolled by the keyboard
                this.live.append(text);
            }
        }
    }

    // --- The page ---------------------------------------------------------------------------------------------

    const cells = shown.map((element, place) => new Cell(element, place + 1));
    const status = make("span", {className: "cell-status"});
    status.setAttribute("role", "status");
    const trains = cells.some((cell) => cell.code.includes("LESSON_UPDATES"));
    const runAllButton = button(words.runAll, () => enqueue(cells));
    const restartButton = button(words.restart, () => restart());
    restartButton.hidden = true;
    shown[0].before(group(words.page, "cells-bar", make("p", {textContent: words.about + (trains ? words.trains : "")}),
        runAllButton, restartButton, status));

    function run(cell) {
        enqueue([...cells.slice(0, cell.number - 1).filter((above) => above.ran !== above.code), cell]);
    }

    function enqueue(wanted) {
        queue.push(...wanted.filter((cell) => !cell.busy));
        next();
    }

    function next() {
        if (!current && queue.length) {
            current = queue.shift();
            if (!worker) {
                worker = new Worker(new URL("worker.js", script.src), {type: "module"});
                worker.onmessage = ({data}) => hear(data);
                worker.onerror = (event) => hear({failed: event.message ?? "worker.js"});
                worker.postMessage({pyodide: new URL(script.dataset.pyodide, script.src).href});
                restartButton.hidden = false;
                status.textContent = words.starting;
            }
            current.sent = current.code;
            current.say(words.starting);
            worker.postMessage({run: current.number, source: current.sent, page: cells.map((cell) => cell.code)});
        }
        queue.forEach((cell) => cell.say(words.waiting(current.number)));
    }

    function hear(message) {
        if (message.loading) {
            const {loading, done, total} = message;
            const told = done < total ? words.loading(loading.join(", "), megabytes(done), megabytes(total))
                : words.preparing;
            [current, ...queue].forEach((cell) => cell.say(told)); // the cell that was pressed may be far below
        } else if (message.began) {
            current.begin();
            queue.forEach((cell) => cell.say(words.waiting(current.number)));
        } else if (message.kind) {
            current.add(message);
        } else if (message.ended) {
            end(message);
        } else if (message.failed) {
            const cell = current;
            restart();
            cell?.say(words.broken(message.failed));
            status.textContent = words.broken(message.failed);
        }
    }

    function end({well, seconds, loaded}) {
        const [cell, left] = [current, well ? [] : queue];
        current = null;
        queue = well ? queue : [];
        const text = (well ? words.ran : words.failed)(seconds.toFixed(seconds < 10 ? 2 : 0));
        cell.say(loaded.length ? `${text}. ${words.loaded(loaded.join(", "))}` : text);
        status.textContent = `${words.bar(cell.number)}: ${cell.state.textContent}`;
        left.forEach((skipped) => skipped.say(words.skipped(cell.number)));
        cell.changed();
        next();
    }

    function restart() {
        worker?.terminate();
        worker = null;
        const [stopped, left] = [current, queue];
        [current, queue] = [null, []];
        for (const cell of cells) {
            if (cell === stopped) {
                cell.say(words.stopped);
            } else if (cell.ran !== null || left.includes(cell)) {
                cell.say(words.anew);
            }
            cell.ran = null;
        }
        if (document.activeElement === restartButton) {
            runAllButton.focus();
        }
        restartButton.hidden = true;
        status.textContent = words.restarted;
    }
})();
