#!/usr/bin/env python3
"""Completion scripts for bash, zsh and fish out of `semel help --list`, so that they cannot differ
from what the program takes.

completion.py PROGRAM DIR writes DIR/semel.bash, DIR/_semel (zsh) and DIR/semel.fish.
"""

import re
import subprocess
import sys
from pathlib import Path

MADE = '# Completion for {}, made by packaging/completion.py from `semel help --list`.'
# Kinds and names of values that are paths. What is neither a path nor a word is not completed.
FILES = ('FILE', 'TEXT')
DIRECTORIES = ('DIR', 'FROM', 'TO')


class Flag:
    """A flag or positional: its names, and what its value can be."""

    def __init__(self, names, kind, text):
        self.names = names.split(',')
        self.kind = kind
        # Its first sentence; what comes behind it may tell of this machine.
        self.text = re.split(r'(?<=[^.])\. ', text)[0].rstrip('.')
        self.is_optional = kind.startswith('[')
        self.words = kind.strip('[]').split('|') if '|' in kind else []
        value = kind or names
        self.is_file = value in FILES
        self.is_directory = value in DIRECTORIES


class Subcommand:
    def __init__(self, name, text):
        self.name = name
        self.text = text
        self.flags = []
        self.positionals = []


def asked(program):
    """The program itself, with an empty name, and its subcommands."""
    text = subprocess.run([program, 'help', '--list'], capture_output=True, text=True, timeout=60,
                          check=True).stdout
    found = {'': Subcommand('', '')}
    for row in text.splitlines():
        what, name, *rest = row.split('\t')
        if what == 'subcommand':
            found[name] = Subcommand(name, *rest)
        elif what == 'flag':
            found[name].flags.append(Flag(*rest))
        elif what == 'positional':
            found[name].positionals.append(Flag(*rest))
        else:
            raise SystemExit(f'`help --list` has an unknown row: {row}')
    own = found.pop('')
    for command in found.values():
        for positional in command.positionals:
            if positional.names == ['SUBCOMMAND']:
                positional.words = [name for name in found if ' ' not in name]
    for command in found.values():
        inner = [name.split()[1] for name in found if name.startswith(command.name + ' ')]
        if inner:
            command.positionals = [Flag('SUBCOMMAND', '', '')]
            command.positionals[0].words = inner
    return own, list(found.values())


def outer(commands):
    """Those that are not below another one."""
    return [command for command in commands if ' ' not in command.name]


def sh(text):
    """One word for a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


# --- bash ---------------------------------------------------------------------------------------

BASH = '''
_semel() {
  local IFS=$' \\t\\n' word=${COMP_WORDS[COMP_CWORD]} before='' subcommand='' words=''
  [ "$COMP_CWORD" -lt 1 ] || before=${COMP_WORDS[COMP_CWORD - 1]}
  [ "$COMP_CWORD" -lt 2 ] || subcommand=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -ge 3 ]; then
    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
      @NESTED@) subcommand="${COMP_WORDS[1]} ${COMP_WORDS[2]}" ;;
    esac
  fi
  # --flag=value comes as three words.
  if [ "$word" = = ]; then
    word=''
  elif [ "$before" = = ] && [ "$COMP_CWORD" -ge 2 ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  case "$subcommand $before" in
@VALUES@
  esac
  case "$subcommand" in
@REST@
  esac
}

complete -F _semel semel
'''


def bash_answer(flag):
    """Commands that complete a value of `flag`; empty if it can be anything."""
    if flag.words:
        return [f'mapfile -t COMPREPLY < <(compgen -W {sh(" ".join(flag.words))} -- "$word")']
    if flag.is_file or flag.is_directory:
        kind = '-d' if flag.is_directory else '-f'
        return ['compopt -o filenames 2>/dev/null',
                f'mapfile -t COMPREPLY < <(compgen {kind} -- "$word")']
    return []


def bash_values(command):
    rows = []
    for flag in command.flags:
        if not flag.kind:
            continue
        pattern = ' | '.join(sh(f'{command.name} {name}') for name in flag.names)
        answer = [*bash_answer(flag), 'return']
        if flag.is_optional:  # without a value another flag may follow
            answer = ['if [[ $word != -* ]]; then', *(f'  {row}' for row in answer), 'fi']
        rows += [f'    {pattern})', *(f'      {row}' for row in answer), '      ;;']
    return rows


def bash_rest(command, subcommands=()):
    names = [name for flag in command.flags for name in flag.names]
    words = ' '.join([*(other.name for other in subcommands), *names])
    answer = 'mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")'
    rows = [f'    {sh(command.name)})', f'      words={sh(words)}']
    if command.positionals:
        rows += ['      if [[ $word != -* ]]; then',
                 *(f'        {row}' for row in bash_answer(command.positionals[0])),
                 '        return', '      fi']
    return [*rows, f'      {answer} ;;']


def bash(own, commands):
    values = [row for command in (own, *commands) for row in bash_values(command)]
    rest = [*bash_rest(own, outer(commands)), *(row for c in commands for row in bash_rest(c))]
    nested = ' | '.join(sh(c.name) for c in commands if ' ' in c.name) or "''"
    text = BASH.replace('@NESTED@', nested)
    text = text.replace('@VALUES@', '\n'.join(values)).replace('@REST@', '\n'.join(rest))
    return MADE.format('bash') + '\n' + text


# --- zsh ----------------------------------------------------------------------------------------

ZSH = '''
_semel() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C \\
@OWN@
    '1: :->subcommand' '*:: :->rest'
  case $state in
    subcommand)
      local -a subcommands=(
@SUBCOMMANDS@
      )
      _describe subcommand subcommands ;;
    rest)
      local subcommand=$words[1]
      if (( CURRENT > 2 )); then
        case "$words[1] $words[2]" in
          @NESTED@) subcommand="$words[1] $words[2]"; shift words; (( CURRENT-- )) ;;
        esac
      fi
      case $subcommand in
@REST@
      esac ;;
  esac
}

_semel "$@"
'''


def zsh_text(text):
    return re.sub(r'([\[\]:\\])', r'\\\1', text)


def zsh_value(flag, name):
    if flag.words:
        return f'{name}:({" ".join(flag.words)})'
    if flag.is_directory:
        return f'{name}:_files -/'
    return f'{name}:_files' if flag.is_file else f'{name}: '


def zsh_specs(command):
    specs = []
    for flag in command.flags:
        for name in flag.names:
            text = f'[{zsh_text(flag.text)}]'
            if not flag.kind:
                specs.append(f'{name}{text}')
                continue
            joint = '=' if name.startswith('--') else '+'
            colon = '::' if flag.is_optional else ':'
            value = zsh_value(flag, 'value' if flag.words else zsh_text(flag.kind))
            specs.append(f'*{name}{joint}{text}{colon}{value}')
    names = [positional.names[0] for positional in command.positionals]
    for at, positional in enumerate(command.positionals, 1):
        where = '*' if names == ['FILE'] else str(at)
        specs.append(f'{where}:{zsh_value(positional, names[at - 1])}')
    return specs


def zsh(own, commands):
    shown = [f'        {sh(c.name + ":" + zsh_text(c.text))}' for c in outer(commands)]
    rest = []
    for command in commands:
        specs = ' \\\n'.join(f'            {sh(spec)}' for spec in zsh_specs(command))
        name = sh(command.name) if ' ' in command.name else command.name
        rest += [f'        {name})', '          _arguments \\', f'{specs} ;;']
    text = ZSH.replace('@OWN@', '\n'.join(f'    {sh(spec)} \\' for spec in zsh_specs(own)))
    nested = '|'.join(sh(c.name) for c in commands if ' ' in c.name) or "''"
    text = text.replace('@NESTED@', nested).replace('@SUBCOMMANDS@', '\n'.join(shown))
    text = text.replace('@REST@', '\n'.join(rest))
    return '#compdef semel\n' + MADE.format('zsh') + '\n' + text


# --- fish ---------------------------------------------------------------------------------------

FISH = '''
# The subcommand is the first word behind the program, or the first two; later words may look like
# one.
function __semel_subcommand
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

complete -c semel -f
'''


def fish_word(text):
    return "'" + text.replace('\\', '\\\\').replace("'", "\\'") + "'"


def fish_value(flag):
    if flag.words:
        return ('' if flag.is_optional else '-x ') + f'-a {fish_word(" ".join(flag.words))}'
    if flag.is_directory:
        return "-x -a '(__fish_complete_directories)'"
    return '-r -F' if flag.is_file else '-x'


def fish_rows(command):
    condition = f'__semel_subcommand {command.name}' if command.name else '__fish_use_subcommand'
    start = f"complete -c semel -n {fish_word(condition)}"
    rows = []
    for flag in command.flags:
        names = ' '.join(f'-l {name[2:]}' if name.startswith('--') else f'-s {name[1:]}'
                         for name in flag.names)
        value = f' {fish_value(flag)}' if flag.kind else ''
        rows.append(f'{start} {names}{value} -d {fish_word(flag.text)}')
    for positional in command.positionals[:1]:
        value = '-F' if positional.is_file else fish_value(positional).removeprefix('-x ')
        rows.append(f'{start} {value}')
    return rows


def fish(own, commands):
    rows = [f"complete -c semel -n __fish_use_subcommand -a {c.name} -d {fish_word(c.text)}"
            for c in outer(commands)]
    rows += [row for command in (own, *commands) for row in fish_rows(command)]
    return MADE.format('fish') + '\n' + FISH + '\n'.join(rows) + '\n'


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    own, commands = asked(program)
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in (('semel.bash', bash), ('_semel', zsh), ('semel.fish', fish)):
        (folder / name).write_text(write(own, commands), encoding='utf-8')
    print(f'completion: {len(commands)} subcommands, '
          f'{sum(len(command.flags) for command in commands)} flags')


if __name__ == '__main__':
    main()
