#!/usr/bin/env bash
# Gets Open MPI, MPICH, Slurm, METIS and Scotch for the tests into .cluster, without root: it downloads Debian's (or
# Ubuntu's) packages with everything that they need and this system lacks, and unpacks them there. Nothing is installed.
#
#   .cluster/openmpi/bin   mpirun, mpicc
#   .cluster/mpich/bin     mpirun, mpicc
#   .cluster/slurm/bin     srun, sbatch, scancel, squeue, scontrol, sinfo; slurmctld, slurmd, munged
#   .cluster/partition/bin gpmetis, scotch_gpart
#   .cluster/versions      the packages and their versions
#
# usage: scripts/cluster-tools.sh [-q]      -q says nothing if they cannot be had, apart from the exit status 1
#
# A second run takes milliseconds. Several at a time are safe: they wait for one another.
set -euo pipefail
cd "$(dirname "$0")/.."
quiet=${1:-}
names=(openmpi-bin libopenmpi-dev mpich libmpich-dev slurmctld slurmd slurm-client munge metis scotch)
# Packages that belong in the folder even if the system has them: their files are used together.
family='^(lib)?(openmpi|mpich|slurm|munge|metis|scotch)'
# Dependencies that running and compiling C programs does not use.
needless='^(autoconf|automake|autotools-dev|m4|gfortran.*|libgfortran-.*-dev|libjs-.*|libcaf-.*)$'

lack() { # why
  if [ "$quiet" != -q ]; then
    printf 'there is no Open MPI, MPICH, Slurm, METIS and Scotch for the tests: %s\n  to fix: run scripts/cluster-tools.sh on Debian or Ubuntu with a network; the tests that need them are skipped\n' "$1" >&2
  fi
  exit 1
}

for command in apt-get dpkg-deb dpkg-query flock; do
  command -v $command >/dev/null || lack "there is no $command"
done
key=$( (cat scripts/cluster-tools.sh; dpkg --print-architecture; grep -h '^VERSION_ID' /etc/os-release || true) | sha256sum)
if [ "$(cat .cluster/stamp 2>/dev/null)" = "$key" ]; then exit 0; fi
if [ -L .cluster ]; then lack ".cluster is a link to a folder of another version of this script; run the script there, or remove the link"; fi

exec 9>.cluster.lock
flock 9
if [ "$(cat .cluster/stamp 2>/dev/null)" = "$key" ]; then exit 0; fi
new=$PWD/.cluster.new
rm -rf "$new"
mkdir -p "$new/debs" "$new/apt/lists/partial"
trap 'rm -rf "$new"' EXIT
echo "getting Open MPI, MPICH, Slurm, METIS and Scotch for the tests into .cluster (half a minute)"

apt=(apt-get -q -o Debug::NoLocking=1 -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=)
simulate() { "${apt[@]}" -s -q --no-install-recommends install "${names[@]}"; }
own=0
update() { # package lists of our own: updating the system's needs root
  if [ $own = 0 ]; then
    own=1
    apt+=(-o "Dir::State::lists=$new/apt/lists")
    "${apt[@]}" update >"$new/log" 2>&1 || true # one unreachable source of several is no failure
  fi
}
if ! simulate >"$new/plan" 2>"$new/log"; then
  update
  simulate >"$new/plan" 2>>"$new/log" || lack "apt does not find the packages: $(grep -m 1 '^E:' "$new/log" || tail -n 1 "$new/log")"
fi
wanted() {
  {
    sed -n 's/^Inst \([^ ]*\) .*/\1/p' "$new/plan"
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *//p' | grep -E "$family" || true
  } | grep -vE "$needless" | sort -u
}
wanted >"$new/wanted"
download() { (cd "$new/debs" && xargs "${apt[@]}" download <"$new/wanted" >>"$new/log" 2>&1); }
if ! download; then
  update # the system's lists may name versions that the server no longer has
  simulate >"$new/plan" 2>>"$new/log" || true
  wanted >"$new/wanted"
  download || lack "the packages cannot be downloaded: $(grep -m 1 '^E:' "$new/log" || tail -n 1 "$new/log")"
fi
for deb in "$new"/debs/*.deb; do
  dpkg-deb -x "$deb" "$new"
  dpkg-deb -W --showformat '${Package} ${Version}\n' "$deb"
done >"$new/versions"

lib=$(cd "$new/usr/lib" && echo *-linux-gnu*)
(
  cd "$new/usr"
  rm -rf ../{debs,apt,plan,wanted,log,etc,var} share/{doc,man,doc-base,lintian,bash-completion,locale,javascript} "lib/$lib"/fortran
  find lib -name '*.a' -delete
)

# The wrappers find the folder by their own place, and tell programs where the libraries are.
wrap() { # name, the packages' command, lines before it
  mkdir -p "$(dirname "$new/$1")"
  {
    cat <<WRAP
#!/bin/sh
# Written by scripts/cluster-tools.sh.
root=\$(cd "\$(dirname "\$(readlink -f "\$0")")/../.." && pwd)
l=\$root/usr/lib/$lib
export LD_LIBRARY_PATH="\$l:\$root/lib/$lib:\$l/slurm-wlm:\$l/pmix2/lib:\$root/usr/lib/libpsm1\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
${3:-}
exec "\$root/$2" ${4:-} "\$@"
WRAP
  } >"$new/$1"
  chmod 755 "$new/$1"
}
openmpi='export OPAL_PREFIX="$root/usr" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PATH="$root/openmpi/bin:$PATH"
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_base_warn_component_unused=0 PMIX_MCA_pcompress_base_silence_warning=1'
wrap openmpi/bin/mpirun usr/bin/mpirun.openmpi "$openmpi"
wrap openmpi/bin/orted usr/bin/orted "$openmpi"
wrap openmpi/bin/ompi_info usr/bin/ompi_info "$openmpi"
wrap openmpi/bin/mpicc usr/bin/mpicc.openmpi "$openmpi"
wrap mpich/bin/mpirun usr/bin/mpiexec.hydra 'export PATH="$root/mpich/bin:$PATH"'
wrap mpich/bin/hydra_pmi_proxy usr/bin/hydra_pmi_proxy
wrap mpich/bin/mpicc usr/bin/mpicc.mpich 'export MPICH_ROOT="$root"'
for command in srun sbatch scancel squeue scontrol sinfo salloc sacct; do wrap slurm/bin/$command usr/bin/$command; done
for command in slurmctld slurmd slurmstepd; do wrap slurm/bin/$command usr/sbin/$command-wlm; done
wrap slurm/bin/munged usr/sbin/munged
for command in gpmetis scotch_gpart; do wrap partition/bin/$command usr/bin/$command; done

sed -i "s|^linker_flags=|& -Wl,-rpath,\${libdir} -Wl,-rpath,\${prefix}/lib/$lib|" "$new"/usr/share/openmpi/*-wrapper-data.txt
sed -i -E -e 's@^(prefix|includedir|libdir)=/usr@\1=$MPICH_ROOT/usr@' -e 's@^final_ldflags="@&-Wl,-rpath,$libdir@' "$new/usr/bin/mpicc.mpich"
if [ -d "$new/usr/lib/libpsm1" ]; then ln -s libpsm_infinipath.so.1.16 "$new/usr/lib/libpsm1/libpsm_infinipath.so.1"; fi

printf '%s' "$key" >"$new/stamp"
rm -rf .cluster
mv "$new" .cluster
