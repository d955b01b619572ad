// Python, beside the page: it loads Pyodide from the site's own folder, and runs one cell after another.
//
// The page sends {pyodide: address} once, and {run: number, source, page} for each cell, where `page` is the code of
// all cells: what it imports is loaded. It gets {loading: [names], done, total} in bytes, {output, number, kind, ...},
// {began: number}, {ended: number, well, seconds, loaded}, or {failed: message}, after which nothing more comes.

// What a page needs besides what its code imports: figures with Japanese words their font, and models of layers SciPy,
// which computes erf and adds up the gradients of looked-up rows.
const JAPANESE = /[\u3040-\u30ff\u4e00-\u9fff]/;
const LAYERS = /\bnn\.|\bTransformer|\bMultiHeadAttention/;

// A notebook's command, which is no Python; figures are shown without it.
const withoutMagic = (source) => source.replace(/^%matplotlib\b/gm, "# $&");

let started = null; // the promise of what runs a cell
let running = null; // the number of the cell
let unfound = null; // the module that its import did not find
const progress = {names: [], done: 0, total: 0, told: 0};

// Every file comes through fetch: count what arrives.
const plainFetch = self.fetch.bind(self);
self.fetch = async (address, options) => {
    const answer = await plainFetch(address, options);
    if (!answer.ok || !answer.body) {
        return answer;
    }
    const counter = new TransformStream({
        transform(chunk, controller) {
            progress.done += chunk.byteLength;
            tellProgress();
            controller.enqueue(chunk);
        },
    });
    return new Response(answer.body.pipeThrough(counter), {headers: answer.headers, status: answer.status});
};

function tellProgress() {
    if (progress.total && performance.now() - progress.told > 100) {
        progress.told = performance.now();
        postMessage({loading: progress.names, done: Math.min(progress.done, progress.total), total: progress.total});
    }
}

function begin(names, total) {
    Object.assign(progress, {names, total, done: 0, told: 0});
    tellProgress();
}

async function start(base) {
    const sizes = await (await plainFetch(base + "sizes.json")).json();
    const lock = await (await plainFetch(base + "pyodide-lock.json")).json();
    begin(["Python"], sizes.core);
    const {loadPyodide} = await import(base + "pyodide.mjs");
    const python = await loadPyodide({indexURL: base});
    const runner = await (await plainFetch(new URL("run_cells.py", self.location))).text();
    python.FS.writeFile("run_cells.py", runner);
    const send = (kind, content, width) => {
        if (kind === "missing") {
            unfound = content;
        } else {
            postMessage({output: typeof content === "string" ? content : content.toJs(), number: running, kind, width});
        }
    };
    const cells = python.pyimport("run_cells").Cells(send);
    const importsOf = python.pyimport("pyodide.code").find_imports;
    const withImport = new Map(
        Object.values(lock.packages).flatMap(({name, imports}) => imports.map((module) => [module, name])));

    const closure = (names) => {
        const found = new Set();
        const add = (name) => found.has(name) || (found.add(name), lock.packages[name].depends.forEach(add));
        names.forEach(add);
        return [...found].filter((name) => !(name in python.loadedPackages));
    };

    // Loads the packages with these modules, where the site has them, and returns the packages' names.
    const load = async (modules) => {
        const names = modules.map((name) => withImport.get(name)).filter((name) => name);
        const missing = closure(names);
        if (missing.length) {
            begin(missing, missing.reduce((sum, name) => sum + sizes[name], 0));
            const lacking = [];
            await python.loadPackage(names, {messageCallback: () => {}, errorCallback: (text) => lacking.push(text)});
            if (lacking.length) {
                throw new Error(lacking.join("; "));
            }
        }
        return missing;
    };

    const importsIn = (source) => {
        const proxy = importsOf(withoutMagic(source));
        const names = proxy.toJs();
        proxy.destroy();
        return names;
    };

    return async ({run: number, source, page}) => {
        const modules = [...page, source].flatMap(importsIn);
        const code = [...page, source].join("\n");
        if (JAPANESE.test(code) && modules.includes("matplotlib")) {
            modules.push("matplotlib_fontja");
        }
        if (LAYERS.test(code)) {
            modules.push("scipy");
        }
        await load(modules);
        [running, unfound] = [number, null];
        postMessage({began: number});
        const began = performance.now();
        const well = cells.run(withoutMagic(source), number);
        const seconds = (performance.now() - began) / 1000;
        const loaded = unfound && withImport.has(unfound) ? await load([unfound]) : [];
        postMessage({ended: number, well, seconds, loaded});
    };
}

self.onmessage = async ({data}) => {
    try {
        if (data.pyodide) {
            started = start(data.pyodide);
        } else {
            await (await started)(data);
        }
    } catch (error) {
        postMessage({failed: String(error.message ?? error)});
    }
};
