// messages.js: the texts of the tab "Memory" and of the badges, by language, and sizes in that language. In: the
// language that ComfyUI's settings have. Out: texts. If a language has no table, or its table lacks a key, the text is
// English. Sentences of the server (why a model is there, what a run did) come in English and are not in here.
import { app } from "../../scripts/app.js";

const LOCALE = "Comfy.Locale";

// A word in braces, such as {name}, is replaced by a value. tests/comfyui/messages.py reads this table.
export const MESSAGES = {
    en: {
        B: "B", KiB: "KiB", MiB: "MiB", GiB: "GiB",
        memory: "Memory",
        memoryTooltip: "Memory (memstow)",
        memoryOfAll: "Memory of all models",
        apply: "Apply policies now",
        snapshot: "Snapshot",
        page: "Page of this moment",
        diff: "Compare with the last snapshot",
        whatGrew: "What grew since the snapshot",
        lastReport: "Report of the last run",
        noFigures: "No figures: {why}",
        status: "status {status}",
        itFailed: "it failed; see ComfyUI's log",
        notUnder: "ComfyUI does not run under memstow, so nothing is known of its memory. ComfyUI's log says why.",
        notInstalled: "memstow is not installed, so nothing is known of ComfyUI's memory.",
        install: "It is not on PyPI yet. Type this in a clone of memstow, with the Python that starts ComfyUI:",
        command: "Command",
        thenRestart: "Then this page has a button that restarts ComfyUI. If you have memstow's wheel, install that "
            + "instead: python -m pip install memstow-….whl. docs/install.md says how a wheel is made.",
        canRestart: "memstow is installed, but ComfyUI does not run under it, so nothing is known of its memory.",
        restart: "Restart under memstow",
        restarts: "ComfyUI starts again. Its memory is here when it has started.",
        stillNot: "ComfyUI has started, but not under memstow; its log says why",
        forbidden: "ComfyUI does not run under memstow, because MEMSTOW=0 in its environment prevents it. Remove that, "
            + "and start ComfyUI again.",
        otherSystem: "memstow runs on Linux only, so nothing is known of ComfyUI's memory.",
        otherVersion: "ComfyUI runs under memstow, but this node pack is of another version: take both from one "
            + "version. ComfyUI's log says more.",
        unknownComfyui: "ComfyUI runs under memstow, but this node pack does not know this version of ComfyUI. "
            + "ComfyUI's log says what it missed.",
        noLedger: "The library of memstow is in ComfyUI, but keeps no ledger. ComfyUI's log says why.",
        afterRun: "ComfyUI does it when the current run has ended.",
        cancel: "Cancel",
        cancelOf: "Cancel: {work}",
        workCancelled: "{work}: cancelled",
        snapshotMade: "Snapshot: output/{file}",
        openPage: "Open: {page}",
        madeAt: ", made at {time}",
        named: "{name}: {value}",
        gpu: "GPU {number}: {name}",
        ram: "RAM",
        mappedFiles: "mapped files",
        keptByAllocator: "freed, kept by the allocator (at most)",
        keptByPytorch: "freed, kept by PyTorch",
        otherOfComfyui: "other memory of ComfyUI",
        otherPrograms: "other programs",
        available: "available",
        other: "other",
        inUse: "in use",
        free: "free",
        inRam: "{size} RAM",
        notInRam: "{size} not in RAM",
        onGpu: "{size} GPU",
        stowedThere: "{size} stowed",
        nothing: "nothing",
        models: "Models",
        noModels: "No model is loaded.",
        loaded: ", loaded",
        hereBecause: "Here because: {why}",
        policyOf: "Policy of {model}",
        priorityOf: "Priority of {model}",
        priority: "priority ",
        priorityTooltip: "When memory is short, models of lower priority go first",
        priorityRange: "a priority is from {least} to {most}",
        stow: "Stow",
        restore: "Restore",
        freeNow: "Free now",
        why: "Why?",
        actOn: "{act} {model}",
        whyHere: "Why is {model} here?",
        stowed: "stowed {size}",
        restored: "restored {size}",
        freed: "freed {size}",
        policyNone: "policy none; nothing is remembered",
        policyKept: "policy {policy}; remembered for its file",
        policyUntil: "policy {policy}; until it is unloaded: it came from no file that memstow knows",
        policyPriorityKept: "policy {policy}, priority {priority}; remembered for its file",
        policyPriorityUntil: "policy {policy}, priority {priority}; until it is unloaded: it came from no file that "
            + "memstow knows",
        comfyuiButtons: "ComfyUI's own buttons",
        unload: "Unload models",
        freeCache: "Free model and node cache",
        askedFor: "{button}: asked for. ComfyUI does it while no run is in progress.",
        unloadTakes: "Would take from the GPU: {models}. It frees no RAM: the node cache still has them.",
        freeTakes: "Would take: {models}; besides all cached outputs but those of models that stay.",
        noModel: "no model",
        leftBehind: "Left behind",
        leftBehindLong: "Left behind by models that are gone",
        heldBy: "held by {holders}",
        heldUnknown: "what holds it is not known",
        leaks: "Leaks",
        aLeak: "A leak",
        someLeaks: "{count} leaks",
        perRun: "+{size} a run",
        outsideOfNodes: "outside of nodes",
        allAboutIt: "All about it",
        lastRun: "Last run",
        noRun: "No run has ended yet.",
        runEnded: "Run {run}: {outcome}",
        ok: "ok",
        failed: "failed",
        cancelled: "cancelled",
        "out-of-memory": "out-of-memory",
        residentMemory: "resident memory",
        liveOfModels: "live memory of models",
        gpuOf: "{model}, on GPU",
        liveWhileNodeRan: "live memory, while a node ran",
        run: "run",
        before: "before",
        atMost: "at most",
        after: "after",
        lastRuns: "Last runs",
        asTable: "As a table",
        runNumber: "run {run}",
        runMarked: "run {run}: {marks}",
        markOfRun: "Run {run}: {mark}",
        gaveBack: "gave back {size}",
        highest: "the highest, {size}",
        curveOfOne: "Resident memory in one run: {before} before, {most} at most, {after} after",
        curveOfMany: "Resident memory in the last {count} runs: {before} before, {most} at most, {after} after",
        badge: "{most} at most, {stayed} stayed",
    },
    fr: {
        B: "o", KiB: "Kio", MiB: "Mio", GiB: "Gio",
        memory: "Mémoire",
        memoryTooltip: "Mémoire (memstow)",
        memoryOfAll: "Mémoire de tous les modèles",
        apply: "Appliquer les politiques",
        snapshot: "Instantané",
        page: "Page de cet instant",
        diff: "Comparer avec le dernier instantané",
        whatGrew: "Ce qui a grandi depuis l'instantané",
        lastReport: "Rapport de la dernière exécution",
        noFigures: "Pas de chiffres : {why}",
        status: "état HTTP {status}",
        itFailed: "cela a échoué ; voir le journal de ComfyUI",
        notUnder: "ComfyUI ne tourne pas sous memstow : on ne sait rien de sa mémoire. Le journal de ComfyUI dit "
            + "pourquoi.",
        notInstalled: "memstow n'est pas installé : on ne sait rien de la mémoire de ComfyUI.",
        install: "Il n'est pas encore sur PyPI. Tapez ceci dans un clone de memstow, avec le Python qui démarre "
            + "ComfyUI :",
        command: "Commande",
        thenRestart: "Cette page aura alors un bouton qui redémarre ComfyUI. Si vous avez le wheel de memstow, "
            + "installez-le plutôt : python -m pip install memstow-….whl. docs/install.md dit comment en faire un.",
        canRestart: "memstow est installé, mais ComfyUI ne tourne pas sous memstow : on ne sait rien de sa mémoire.",
        restart: "Redémarrer sous memstow",
        restarts: "ComfyUI redémarre. Sa mémoire apparaîtra ici dès qu'il aura démarré.",
        stillNot: "ComfyUI a démarré, mais pas sous memstow ; son journal dit pourquoi",
        forbidden: "ComfyUI ne tourne pas sous memstow : MEMSTOW=0 dans son environnement l'interdit. Retirez-le, puis "
            + "redémarrez ComfyUI.",
        otherSystem: "memstow ne fonctionne que sous Linux : on ne sait rien de la mémoire de ComfyUI.",
        otherVersion: "ComfyUI tourne sous memstow, mais ce pack de nœuds est d'une autre version : prenez les deux de "
            + "la même version. Le journal de ComfyUI en dit plus.",
        unknownComfyui: "ComfyUI tourne sous memstow, mais ce pack de nœuds ne connaît pas cette version de ComfyUI. "
            + "Le journal de ComfyUI dit ce qui manque.",
        noLedger: "La bibliothèque de memstow est dans ComfyUI, mais ne tient pas de registre. Le journal de ComfyUI "
            + "dit pourquoi.",
        afterRun: "ComfyUI le fera à la fin de l'exécution en cours.",
        cancel: "Annuler",
        cancelOf: "Annuler : {work}",
        workCancelled: "{work} : annulé",
        snapshotMade: "Instantané : output/{file}",
        openPage: "Ouvrir : {page}",
        madeAt: ", à {time}",
        named: "{name} : {value}",
        gpu: "GPU {number} : {name}",
        ram: "Mémoire vive",
        mappedFiles: "fichiers projetés",
        keptByAllocator: "libérés, gardés par l'allocateur (au plus)",
        keptByPytorch: "libérés, gardés par PyTorch",
        otherOfComfyui: "reste de ComfyUI",
        otherPrograms: "autres programmes",
        available: "disponible",
        other: "reste",
        inUse: "occupée",
        free: "libre",
        inRam: "{size} en mémoire vive",
        notInRam: "{size} hors de la mémoire vive",
        onGpu: "{size} sur GPU",
        stowedThere: "{size} sur disque",
        nothing: "rien",
        models: "Modèles",
        noModels: "Aucun modèle n'est chargé.",
        loaded: ", chargé",
        hereBecause: "Ici parce que : {why}",
        policyOf: "Politique de {model}",
        priorityOf: "Priorité de {model}",
        priority: "priorité ",
        priorityTooltip: "Quand la mémoire manque, les modèles de moindre priorité partent d'abord",
        priorityRange: "une priorité va de {least} à {most}",
        stow: "Mettre sur disque",
        restore: "Ramener",
        freeNow: "Libérer",
        why: "Pourquoi ?",
        actOn: "{act} : {model}",
        whyHere: "Pourquoi {model} est-il là ?",
        stowed: "{size} mis sur disque",
        restored: "{size} ramenés",
        freed: "{size} libérés",
        policyNone: "politique none ; rien n'est retenu",
        policyKept: "politique {policy} ; retenue pour son fichier",
        policyUntil: "politique {policy} ; jusqu'à ce qu'il soit déchargé : memstow ne connaît pas son fichier",
        policyPriorityKept: "politique {policy}, priorité {priority} ; retenues pour son fichier",
        policyPriorityUntil: "politique {policy}, priorité {priority} ; jusqu'à ce qu'il soit déchargé : memstow ne "
            + "connaît pas son fichier",
        comfyuiButtons: "Boutons de ComfyUI",
        unload: "Décharger les modèles",
        freeCache: "Décharger les modèles et le cache d'exécution",
        askedFor: "{button} : demandé. ComfyUI le fera quand aucune exécution ne sera en cours.",
        unloadTakes: "Retirerait du GPU : {models}. La mémoire vive reste occupée : le cache des nœuds les garde.",
        freeTakes: "Retirerait : {models} ; et toutes les sorties en cache, sauf celles des modèles qui restent.",
        noModel: "aucun modèle",
        leftBehind: "Restes",
        leftBehindLong: "Restes de modèles qui ne sont plus là",
        heldBy: "tenu par {holders}",
        heldUnknown: "on ne sait pas ce qui le tient",
        leaks: "Fuites",
        aLeak: "Une fuite",
        someLeaks: "{count} fuites",
        perRun: "+{size} par exécution",
        outsideOfNodes: "hors des nœuds",
        allAboutIt: "Tout savoir",
        lastRun: "Dernière exécution",
        noRun: "Aucune exécution n'est encore terminée.",
        runEnded: "Exécution {run} : {outcome}",
        ok: "réussie",
        failed: "échouée",
        cancelled: "annulée",
        "out-of-memory": "mémoire insuffisante",
        residentMemory: "mémoire résidente",
        liveOfModels: "mémoire vivante des modèles",
        gpuOf: "{model}, sur GPU",
        liveWhileNodeRan: "mémoire vivante pendant qu'un nœud s'exécutait",
        run: "exécution",
        before: "avant",
        atMost: "au plus",
        after: "après",
        lastRuns: "Dernières exécutions",
        asTable: "En tableau",
        runNumber: "exécution {run}",
        runMarked: "exécution {run} : {marks}",
        markOfRun: "Exécution {run} : {mark}",
        gaveBack: "{size} rendus",
        highest: "le plus haut, {size}",
        curveOfOne: "Mémoire résidente d'une exécution : {before} avant, {most} au plus, {after} après",
        curveOfMany: "Mémoire résidente des {count} dernières exécutions : {before} avant, {most} au plus, "
            + "{after} après",
        badge: "{most} au plus, {stayed} restés",
    },
};

// "pt-BR" is looked for as it is, then as "pt".
function language() {
    const wanted = String(app.extensionManager?.setting.get(LOCALE) ?? "");
    return [wanted, wanted.split("-")[0]].find((one) => Object.hasOwn(MESSAGES, one)) ?? "en";
}

export function text(key, values = {}) {
    const found = MESSAGES[language()][key] ?? MESSAGES.en[key];
    return found.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// The word for the outcome of a run.
export function outcomeOf(run) {
    return Object.hasOwn(MESSAGES.en, run.outcome) ? text(run.outcome) : run.outcome;
}

const DIGITS = { minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: false };
// language → its number format. Formats are kept, because a format takes long to make, and badges need one in each
// frame of the canvas.
const formats = new Map();

function format() {
    const wanted = language();
    if (!formats.has(wanted)) formats.set(wanted, new Intl.NumberFormat(wanted, DIGITS));
    return formats.get(wanted);
}

export function size(bytes) {
    for (const [unit, scale] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
        if (Math.abs(bytes) >= scale) return `${format().format(bytes / scale)} ${text(unit)}`;
    return `${bytes} ${text("B")}`;
}

// Calls `act` each time the user has chosen another language. Front end 1.32.9 tells of the choice just before the
// setting has the new language, so `act` is called a moment later.
export function whenLanguageChanges(act) {
    app.ui?.settings?.addEventListener?.(`${LOCALE}.change`, () => setTimeout(act));
}
