# fish completion of memstow. The words come from the command's own help, so that they are those of its version.
function __memstow_commands
    memstow --help 2>/dev/null | string match -r '^  [a-z]+  .*' | string replace -r '^  ([a-z]+) +(.*)' '$1\t$2'
end
function __memstow_options
    set -l words (commandline -opc)
    memstow $words[2] --help 2>/dev/null | string match -ar -- '--[a-z][a-z-]*=?' | sort -u
end
function __memstow_processes
    memstow ps 2>/dev/null | string match -r '^ *[0-9]+' | string trim
end
function __memstow_is_first
    test (count (commandline -opc)) -eq 1
end
function __memstow_is_in_options
    set -l words (commandline -opc)
    test (count $words) -gt 1; and not contains -- -- $words; and string match -q -- '-*' (commandline -ct)
end
complete -c memstow -n __memstow_is_first -f -a '(__memstow_commands)'
complete -c memstow -n __memstow_is_in_options -f -a '(__memstow_options)'
complete -c memstow -n 'not __memstow_is_first' -a '(__memstow_processes)'
