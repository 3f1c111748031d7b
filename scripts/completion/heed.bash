# Completion of heed's tools for bash. It asks `TOOL --help`, so it knows what the installed tool knows.
# Installed once under each tool's name, where bash-completion finds it; or: source scripts/completion/heed.bash

# What --help writes for an option's value: nothing for a flag.
_heed_value() {
  local help=$1 option=$2 pattern
  case $option in
    --*) pattern="^  (-., |    )$option" ;;
    *) pattern="^  ($option, )--[[:alnum:]-]+" ;;
  esac
  sed -nE "s/$pattern( \[?([^ ]+)( .*)?)?\$/\3/p" <<<"$help" | head -n 1
}

# Sets COMPREPLY to those of the words that begin as the current one.
_heed_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# The values that are words, out of "hard|soft|T" or "bleu|chrf|ter...": single capitals stand for numbers.
_heed_choices() {
  tr '|[]' '\n' <<<"${1%...}" | grep -vxE '[A-Z]?'
}

# Sets COMPREPLY to files that begin as the current word: those that end as asked, where there are any, and folders.
_heed_files() {
  compopt -o filenames 2>/dev/null
  COMPREPLY=()
  [ -z "$2" ] || mapfile -t COMPREPLY < <(compgen -f -X "!*$2" -- "$1" && compgen -d -- "$1")
  [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The option whose list the current word goes on with: the last one before it, where that takes all words behind it.
_heed_list() {
  local at
  for ((at = COMP_CWORD - 1; at > 0; at--)); do
    [[ ${COMP_WORDS[at]} != -* ]] || break
  done
  [[ $at -eq 0 || $(_heed_value "$1" "${COMP_WORDS[at]//_/-}") != *'|'*... ]] || echo "${COMP_WORDS[at]}"
}

_heed() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} help value
  # bash makes three words of --option=value.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  help=$("${COMP_WORDS[0]/#\~/$HOME}" --help 2>/dev/null) || return
  COMPREPLY=()
  [[ $previous == -* || $current == -* ]] || previous=$(_heed_list "$help")
  if [[ $previous == -* ]]; then
    value=$(_heed_value "$help" "${previous//_/-}")
    case $value in
      '') ;; # a flag
      *'|'*) _heed_words "$(_heed_choices "$value")" "$current" ;;
      *.h5*) _heed_files "$current" .h5 ;;
      *.svg) _heed_files "$current" .svg ;;
      FILE* | MODEL | REF | HYP* | SRC | VOCAB) _heed_files "$current" '' ;;
    esac
    [ -z "$value" ] || return
  fi
  if [[ $current == -* ]]; then
    local all
    all=$(sed -nE 's/^  (-., |    )(--[[:alnum:]-]+).*/\2/p' <<<"$help")
    # Negations only once they are asked for: they double the list.
    if [[ $current == --no* ]]; then
      all+=" $(sed -nE 's/^  (-., |    )--([[:alnum:]-]+)(  .*)?$/--no-\2/p' <<<"$help" | grep -vxE -- '--no-(help|version|dump-config)')"
    fi
    _heed_words "$all" "$current"
    return
  fi
  _heed_files "$current" ''
}

case ${BASH_SOURCE[0]##*/} in
  heed.bash) complete -F _heed tokenize build-vocab train translate bleu inspect-attention ;;
  *) complete -F _heed "${BASH_SOURCE[0]##*/}" ;;
esac
