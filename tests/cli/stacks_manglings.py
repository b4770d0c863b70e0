# needs: cc
"""Names that g++ and rustc (both of its manglings) write into symbol tables are shown as people write them, without
hashes and without parameters. (Parameters are not needed: file and line tell overloads apart.) A name that only looks
mangled stays as it is."""
from _ledger import Ledger
from _stacks import BIAS
from support import compile, report, run

NAMES = {
    # rustc, legacy
    "_ZN1r14Shelf$LT$T$GT$4fill17h8c98445a41e05fc0E": "r::Shelf<T>::fill",
    "_ZN1r14Shelf$LT$T$GT$4fill28_$u7b$$u7b$closure$u7d$$u7d$17h3ad2f31d837360e5E": "r::Shelf<T>::fill::{{closure}}",
    "_ZN47_$LT$r..Shelf$LT$u64$GT$$u20$as$u20$r..Keep$GT$4keep17h7f7386613b39b044E": "<r::Shelf<u64> as r::Keep>::keep",
    "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h46661dd7b13d874eE": "std::rt::lang_start::{{closure}}",
    # rustc, v0
    "_RNvCs6GmmlP4bgsG_1r4main": "r::main",
    "_RNvMCs6GmmlP4bgsG_1rINtB2_5ShelfyE4fillB2_": "<r::Shelf<u64>>::fill",
    "_RNCNvMCs6GmmlP4bgsG_1rINtB4_5ShelfyE4fill0B4_": "<r::Shelf<u64>>::fill::{closure#0}",
    "_RINvNtNtCs6GmmlP4bgsG_1r4deep2er4walkKj4_EB6_": "r::deep::er::walk::<4>",
    "_RNvXs_Cs6GmmlP4bgsG_1rINtB4_5ShelfyENtB4_4Keep4keep": "<r::Shelf<u64> as r::Keep>::keep",
    "_RNvXs0_Cs6GmmlP4bgsG_1rRSTlReENtB5_4Keep4keep": "<&[(i32, &str)] as r::Keep>::keep",
    "_RNvNtNtCs6GmmlP4bgsG_1r4deep2eru9gre_6ka8i": "r::deep::er::größe",
    "_RINvMs0_NtNtCscxzlFi8rOL3_10tokenizers9tokenizer10normalizerNtB6_16NormalizedString15transform_rangeNtNtNtCsevLNF"
    "iNqfJP_4core3ops5range9RangeFullINtNtCs1C1lLj4PWSY_5alloc3vec3VecTciEEECs84oBVal8Hga_10tokenizers"
    ".llvm.28765755629":
    "<tokenizers::tokenizer::normalizer::NormalizedString>::transform_range::<core::ops::range::RangeFull, "
    "alloc::vec::Vec<(char, isize)>>",
    # g++
    "_ZN4shop5ShelfC1Ei": "shop::Shelf::Shelf",
    "_ZN4shop5ShelfD2Ev": "shop::Shelf::~Shelf",
    "_ZNK4shop5ShelfplERKS0_": "shop::Shelf::operator+",
    "_ZNK4shop5ShelfcvbEv": "shop::Shelf::operator bool",
    "_ZN4shop5countIJicdEEEiDpT_": "shop::count<int, char, double>",
    "_ZN4shop12_GLOBAL__N_16hiddenESt3mapIiNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt4lessIiESaISt4pairIKi"
    "S7_EEE":
    "shop::(anonymous namespace)::hidden",
    "_ZN4shop3useEv.cold": "shop::use",
    # not mangled
    "_ZN4shop": "_ZN4shop",
    "_Rational": "_Rational",
    "__libc_like": "__libc_like",
}
source = "".join(f'int f{i}(void) __asm__("{name}");\nint f{i}(void) {{ return {i}; }}\n'
                 for i, name in enumerate(NAMES))
path = compile(source + "int main(void) { return 0; }\n", "mangled", flags=("-O0",))
symbols = dict(reversed(line.split()[::2]) for line in run("nm", "--defined-only", path).stdout.splitlines())

ledger = Ledger()
module = ledger.module(str(path), bias=BIAS)
frames = [ledger.frame(BIAS + int(symbols[name], 16), module, interrupted=True) for name in reversed(NAMES)]
ledger.count(ledger.site(module, stack=ledger.node(frames)), alloc=(1, 1))
ledger.save("x.mst")
found = [frame["function"] for frame in report("x.mst")["sites"][0]["stack"]]
wrong = [(name, function) for name, function in zip(NAMES, found, strict=True) if function != NAMES[name]]
assert not wrong, wrong
