# Completion of clew for fish: clew completion fish | source

function __clew_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)

    # Behind "exec ... --" the command that is recorded completes its own words.
    set -l dashes (contains -i -- -- $words)
    if test "$words[2]" = exec; and test -n "$dashes"
        set -l command
        if test $dashes -lt (count $words)
            set command (string escape -- $words[(math $dashes + 1)..-1])
        end
        complete -C (string join ' ' -- $command $current)
        return
    end

    set -lx COMP_WORDS (string join \n -- $words | string collect)\n"$current"
    set -lx _CLEW_COMPLETE lines_complete
    set -l option (string match -r -- '^--[^=]+=' $current)
    for line in ($words[1] 2>/dev/null)
        set -l parts (string split \t -- $line)
        switch $parts[1]
            case plain
                echo $parts[2]\t$parts[3]
            case file
                string replace -r '^' -- "$option" (__fish_complete_path $parts[2])
            case dir
                string replace -r '^' -- "$option" (__fish_complete_directories $parts[2])
        end
    end
end

complete --no-files --command clew --arguments '(__clew_complete)'
