# Completion of heed's programs for bash. Reads the options from `TOOL --help` of the installed program, with the option
# --task if the user has typed it, because other options of train depend on it. Installed once under the name of each
# program, where bash-completion finds it; or: source scripts/completion/heed.bash

# _heed_value HELP OPTION: prints the value that HELP shows for OPTION; prints nothing for a flag
_heed_value() {
  local help=$1 option=$2 pattern name
  [[ $option =~ ^--?[[:alnum:]-]+$ ]] || return 0
  # The other name of an option, such as -tok, stands behind the explanation of the option: (also -tok; ...).
  name=$(sed -nE "/^  (-., |    )--/h; /\\(also --?${option#"${option%%[!-]*}"}[;)]/{g;s/^  (-., |    )(--[[:alnum:]-]+).*/\\2/p;q}" <<<"$help")
  option=${name:-$option}
  case $option in
    --*) pattern="^  (-., |    )$option" ;;
    *) pattern="^  ($option, )--[[:alnum:]-]+" ;;
  esac
  sed -nE "s/$pattern( \[?([^ ]+)( .*)?)?\$/\3/p" <<<"$help" | head -n 1
}

# _heed_words WORDS CURRENT: sets COMPREPLY to those of WORDS that begin with CURRENT
_heed_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# _heed_choices VALUE: prints the words of a value such as "hard|soft|T" or "bleu|chrf|ter..."; capitals are numbers or
# files, also behind a colon (cuda:N)
_heed_choices() {
  tr '|[]' '\n' <<<"${1%...}" | grep -vxE '(.*:)?[A-Z]*'
}

# _heed_files CURRENT ENDING: sets COMPREPLY to folders and files with ENDING that begin with CURRENT, or else to all
# files
_heed_files() {
  compopt -o filenames 2>/dev/null
  COMPREPLY=()
  [ -z "$2" ] || mapfile -t COMPREPLY < <(compgen -f -X "!*$2" -- "$1" && compgen -d -- "$1")
  [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# _heed_list HELP: prints the last option before the current word if that option takes a list, which the word continues
_heed_list() {
  local at
  for ((at = COMP_CWORD - 1; at > 0; at--)); do
    [[ ${COMP_WORDS[at]} != -* ]] || break
  done
  [[ $at -eq 0 || $(_heed_value "$1" "${COMP_WORDS[at]//_/-}") != *'|'*... ]] || echo "${COMP_WORDS[at]}"
}

# _heed_help: prints the help of the program, for the last --task of the command line if its value is complete
_heed_help() {
  local program=${COMP_WORDS[0]/#\~/$HOME} task='' at value
  for ((at = 1; at < ${#COMP_WORDS[@]}; at++)); do
    [ "${COMP_WORDS[at]}" = --task ] || continue
    value=$((at + 1))
    [ "${COMP_WORDS[value]-}" != = ] || value=$((at + 2))
    task=${COMP_WORDS[value]-}
  done
  [ -n "$task" ] && "$program" --task="$task" --help 2>/dev/null || "$program" --help 2>/dev/null
}

_heed() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} help value
  # bash splits --option=value into three words.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  help=$(_heed_help) || return
  COMPREPLY=()
  [[ $previous == -* || $current == -* ]] || previous=$(_heed_list "$help")
  if [[ $previous == -* ]]; then
    value=$(_heed_value "$help" "${previous//_/-}")
    case $value in
      '') ;; # a flag
      *'|'*)
        local words=()
        _heed_words "$(_heed_choices "$value")" "$current"
        if [[ "|$value|" == *'|FILE|'* ]]; then
          words=("${COMPREPLY[@]}")
          _heed_files "$current" ''
          COMPREPLY=("${words[@]}" "${COMPREPLY[@]}")
        fi
        ;;
      DIR)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        ;;
      *.h5*) _heed_files "$current" .h5 ;;
      *.svg) _heed_files "$current" .svg ;;
      FILE* | MODEL | REF | HYP* | SRC | VOCAB) _heed_files "$current" '' ;;
    esac
    [ -z "$value" ] || return
  fi
  if [[ $current == -* ]]; then
    local all
    all=$(sed -nE 's/^  (-., |    )(--[[:alnum:]-]+).*/\2/p' <<<"$help")
    # Completions of --no-OPTION are offered only after --no, because they double the list.
    if [[ $current == --no* ]]; then
      all+=" $(sed -nE 's/^  (-., |    )--([[:alnum:]-]+)(  .*)?$/--no-\2/p' <<<"$help" | grep -vxE -- '--no-(help|version|dump-config)')"
    fi
    _heed_words "$all" "$current"
    return
  fi
  _heed_files "$current" ''
}

case ${BASH_SOURCE[0]##*/} in
  heed.bash) complete -F _heed tokenize build-vocab train translate bleu inspect-attention kernel-regression ;;
  *) complete -F _heed "${BASH_SOURCE[0]##*/}" ;;
esac
