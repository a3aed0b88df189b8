#!/bin/sh
# Names in one line what this machine lacks to build simnode, with the Debian packages that bring it. Usage: preflight.sh PYTHON
# Exit 2 when something is missing; silent otherwise.
set -u
python=$1
cc=${CC:-cc}
lacks=""
packages=""

lack() {
    lacks="$lacks${lacks:+, }$1"
    case " $packages " in *" $2 "*) ;; *) packages="$packages${packages:+ }$2" ;; esac
}

if ! command -v "$python" >/dev/null 2>&1; then
    lack "$python" python3
    lack "venv for Python" python3-venv
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    lack "Python 3.11 or newer ($python is older; set PYTHON=)" python3
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    lack "venv for $python" python3-venv
fi

# $cc unquoted: CC may carry options
if ! command -v ${cc%% *} >/dev/null 2>&1; then
    lack "a C compiler ($cc; set CC=)" gcc
    lack "the C library's headers" libc6-dev
else
    scratch=$(mktemp -d) || exit 2
    trap 'rm -rf "$scratch"' EXIT
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$scratch/probe.c"
    if ! $cc -o "$scratch/probe" "$scratch/probe.c" >/dev/null 2>&1; then
        lack "the C library's headers" libc6-dev
    elif ! $cc -static -o "$scratch/probe" "$scratch/probe.c" >/dev/null 2>&1; then
        lack "a static C library" libc6-dev
    fi
    command -v readelf >/dev/null 2>&1 || lack readelf binutils
fi

if [ -n "$lacks" ]; then
    echo "simnode: this machine lacks $lacks; on Debian: apt-get install $packages" >&2
    exit 2
fi
