# fish completion of memstow. The words come from the command's own help, so that they are those of its version.
function __memstow_commands
    memstow --help 2>/dev/null | string match -r '^  [a-z]+  .*' | string replace -r '^  ([a-z]+) +(.*)' '$1\t$2'
end
function __memstow_options
    set -l words (commandline -opc)
    memstow $words[2] --help 2>/dev/null | string match -ar -- '--[a-z][a-z-]*=?|^ +-[a-z]\b' | string trim | sort -u
end
function __memstow_processes
    memstow ps 2>/dev/null | string match -r '^ *[0-9]+' | string trim
end
# What can follow the words of the program that is to run.
function __memstow_program
    set -l words (commandline -opc)
    set -l first (math (contains -i -- -- $words) + 1)
    complete --do-complete (string join ' ' -- (string escape -- $words[$first..-1]) (commandline -ct))
end
# What the current word is: the first one, a command, an option, a word of the program that is to run, or an argument.
function __memstow_word
    set -l words (commandline -opc)
    if contains -- -- $words
        echo program
    else if test (count $words) -eq 1
        echo first
    else if test "$words[2..-1]" = help
        echo command
    else if string match -q -- '-*' (commandline -ct)
        echo option
    else
        echo argument
    end
end
complete -c memstow -n 'string match -qr "first|command" (__memstow_word)' -f -a '(__memstow_commands)'
complete -c memstow -n 'test (__memstow_word) = first' -f -a 'help\t"how to use a command" --help --version'
complete -c memstow -n 'test (__memstow_word) = option' -a '(__memstow_options)'
complete -c memstow -n 'test (__memstow_word) = argument' -a '(__memstow_processes)'
complete -c memstow -n 'test (__memstow_word) = program' -f -a '(__memstow_program)'
