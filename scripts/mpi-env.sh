# To be sourced: sets the environment for "go build -tags mpi" from the flags of the MPI library whose compiler wrapper
# GNB_MPICC names, by default mpicc. Flags that are already set are kept.
if ! gnb_mpi_flags=$("${GNB_MPICC:-mpicc}" -show 2>&1); then
  echo "mpi-env.sh: ${GNB_MPICC:-mpicc} -show fails: $gnb_mpi_flags; install an MPI library for development (libopenmpi-dev or libmpich-dev, or \"module load\" on a cluster), or set GNB_MPICC to its mpicc" >&2
  unset gnb_mpi_flags
  return 1
fi
# The first word is the C compiler. Compiling takes -I and -D, linking the others.
gnb_mpi_compile='' gnb_mpi_link=''
for gnb_mpi_flag in ${gnb_mpi_flags#* }; do
  case $gnb_mpi_flag in
  -I* | -D*) gnb_mpi_compile+=" $gnb_mpi_flag" ;;
  *) gnb_mpi_link+=" $gnb_mpi_flag" ;;
  esac
done
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g -Wno-deprecated-declarations}$gnb_mpi_compile" CGO_LDFLAGS="${CGO_LDFLAGS:-}$gnb_mpi_link" CGO_ENABLED=1
unset gnb_mpi_flags gnb_mpi_flag gnb_mpi_compile gnb_mpi_link
