package cluster

import (
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Names of launchers, in Place.Launcher. GNB_LAUNCHER chooses one by its name in small letters
// without spaces.
const (
	Slurm    = "Slurm"
	OpenMPI  = "Open MPI"
	MPICH    = "MPICH"
	Torchrun = "torchrun"
)

// OnHost is the command of gnb that starts ranks on a host, with torchrun's variables: see gnb launch.
const OnHost = "on-host"

// Place is the place of this process among those that a launcher has started.
type Place struct {
	// Launcher is Slurm, OpenMPI, MPICH or Torchrun.
	Launcher string
	// Rank is this process's number, 0 to World-1, as the launcher counts.
	Rank, World int
	// LocalRank is this process's number on its node, 0 to LocalWorld-1. LocalWorld is 0, and
	// LocalRank -1, if the launcher does not tell them.
	LocalRank, LocalWorld int
	// JobID differs between two jobs of a user on one machine, if the launcher provides a number.
	JobID string
	// Master is the address host:port at which rank 0 waits for ranks on other machines, "" if it
	// is not known.
	Master string
}

// OneNode reports whether the launcher started all ranks on one node.
func (p *Place) OneNode() bool { return p.LocalWorld == p.World }

// Detect returns the place of this process, or nil if no launcher, or a launcher of a single
// process, has started it. It reads environment variables only, those of:
//
//   - Slurm's srun; a batch script itself is not a rank,
//   - Open MPI's mpirun,
//   - MPICH's mpirun, and others that set PMI_RANK and PMI_SIZE,
//   - torchrun, which Kubernetes' operators set as well.
//
// mpirun within a step of Slurm, and torchrun within either, count as the launcher. Variables of
// two other launchers are an error if they disagree; GNB_LAUNCHER then names the one that counts.
func Detect() (*Place, error) { return detect(os.Getenv) }

// launcher reads the variables of one launcher.
type launcher struct {
	name string
	// rank, world, localRank and localWorld are names of variables.
	rank, world, localRank, localWorld string
}

var launchers = []launcher{
	{Slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
	{OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{MPICH, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{Torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
}

// choice is the value of GNB_LAUNCHER for a launcher.
func choice(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "")) }

func detect(getenv func(string) string) (*Place, error) {
	wanted := strings.ToLower(getenv(envknob.Launcher.Name))
	if wanted == "none" {
		return nil, nil
	}
	var there []*Place
	for _, l := range launchers {
		if wanted != "" && wanted != choice(l.name) {
			continue
		}
		p, err := l.read(getenv)
		if err != nil {
			return nil, err
		}
		if p == nil && wanted != "" {
			return nil, fmt.Errorf("cluster: %s is %q, but %s and %s, which %s sets, are not set; start the program with it, or unset %s",
				envknob.Launcher, wanted, l.rank, l.world, l.name, envknob.Launcher)
		}
		if p != nil {
			there = append(there, p)
		}
	}
	if wanted != "" && len(there) == 0 {
		return nil, fmt.Errorf("cluster: %s is %q; it is slurm, openmpi, mpich, torchrun or none", envknob.Launcher, wanted)
	}
	there = innermost(there, getenv)
	if len(there) == 0 || there[0].World == 1 && len(there) == 1 {
		return nil, nil
	}
	p := there[0]
	for _, q := range there[1:] {
		if p.Rank != q.Rank || p.World != q.World {
			return nil, mixture(p, q)
		}
	}
	if p.World == 1 {
		return nil, nil
	}
	if err := p.address(getenv); err != nil {
		return nil, err
	}
	return p, nil
}

// read returns the launcher's place of this process, or nil if it has not set its variables.
func (l launcher) read(getenv func(string) string) (*Place, error) {
	rank, world := getenv(l.rank), getenv(l.world)
	switch {
	case world == "", rank == "" && l.name == Torchrun: // other programs use these two names too
		return nil, nil
	case rank == "":
		return nil, fmt.Errorf("cluster: %s is set to %q and %s is not; %s sets both", l.world, world, l.rank, l.name)
	}
	p := &Place{Launcher: l.name, LocalRank: -1}
	var err error
	number := func(name, text string, low, high int) (n int) {
		if err != nil {
			return 0
		}
		n, bad := strconv.Atoi(text)
		if bad != nil || n < low || n > high {
			err = fmt.Errorf("cluster: the environment variable %s, which %s sets, is %q; it is a number from %d to %d", name, l.name, text, low, high)
		}
		return n
	}
	p.World = number(l.world, world, 1, maxWorld)
	p.Rank = number(l.rank, rank, 0, p.World-1)
	if l.name == Slurm {
		if tasks := getenv("SLURM_STEP_TASKS_PER_NODE"); tasks != "" && err == nil {
			if p.LocalWorld, err = tasksOn(tasks, getenv("SLURM_NODEID")); err != nil {
				return nil, err
			}
		}
	} else if text := getenv(l.localWorld); text != "" {
		p.LocalWorld = number(l.localWorld, text, 1, p.World)
	}
	if p.LocalWorld > 0 {
		p.LocalRank = number(l.localRank, getenv(l.localRank), 0, p.LocalWorld-1)
	}
	if err != nil {
		return nil, err
	}
	switch l.name {
	case Slurm:
		p.JobID = getenv("SLURM_JOB_ID") + "." + getenv("SLURM_STEP_ID")
	case OpenMPI:
		p.JobID = firstOf(getenv, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid")
	case MPICH:
		p.JobID = firstOf(getenv, "PMI_ID", "PMI_JOBID", "PMI_PORT")
	case Torchrun: // not TORCHELASTIC_RESTART_COUNT: each host's agent has a count of its own
		p.JobID = strings.Join([]string{getenv("TORCHELASTIC_RUN_ID"), getenv("MASTER_PORT")}, " ")
	}
	return p, nil
}

// maxWorld bounds the ranks of a launcher.
const maxWorld = 1 << 16

func firstOf(getenv func(string) string, names ...string) string {
	for _, name := range names {
		if v := getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// tasksOn returns the number of tasks of a node from Slurm's list, such as "2(x3),1".
func tasksOn(list, nodeID string) (int, error) {
	bad := fmt.Errorf("cluster: SLURM_STEP_TASKS_PER_NODE is %q and SLURM_NODEID is %q; Slurm sets them to a list like 2(x3),1 and to a node's place in it", list, nodeID)
	node, err := strconv.Atoi(nodeID)
	if err != nil || node < 0 {
		return 0, bad
	}
	for part := range strings.SplitSeq(list, ",") {
		count, times, many := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > maxWorld {
			return 0, bad
		}
		nodes := 1
		if many {
			if nodes, err = strconv.Atoi(times); err != nil || nodes < 1 {
				return 0, bad
			}
		}
		if node < nodes {
			return n, nil
		}
		node -= nodes
	}
	return 0, bad
}

// innermost drops the launchers that only started the launcher of this process.
func innermost(there []*Place, getenv func(string) string) []*Place {
	find := func(name string) *Place {
		if i := slices.IndexFunc(there, func(p *Place) bool { return p.Launcher == name }); i >= 0 {
			return there[i]
		}
		return nil
	}
	drop := func(name string) {
		there = slices.DeleteFunc(there, func(p *Place) bool { return p.Launcher == name })
	}
	if t := find(Torchrun); t != nil && getenv("TORCHELASTIC_RUN_ID") != "" {
		return []*Place{t}
	}
	slurm, mpich := find(Slurm), find(MPICH)
	// srun --mpi=pmi2 sets PMI_RANK as well, but not the local variables of MPICH's own mpirun.
	if slurm != nil && (find(OpenMPI) != nil || mpich != nil && mpich.LocalWorld > 0 || slurm.World == 1) && len(there) > 1 {
		drop(Slurm)
	}
	return there
}

// mixture is the error of variables of two launchers.
func mixture(p, q *Place) error {
	names := func(p *Place) string {
		l := launchers[slices.IndexFunc(launchers, func(l launcher) bool { return l.name == p.Launcher })]
		return fmt.Sprintf("%s=%d and %s=%d of %s", l.rank, p.Rank, l.world, p.World, p.Launcher)
	}
	return fmt.Errorf("cluster: the environment holds the variables of two launchers that disagree: %s, and %s; unset those of one, or set %s to %s, %s or none",
		names(p), names(q), envknob.Launcher, choice(p.Launcher), choice(q.Launcher))
}

// address sets the address at which rank 0 waits.
func (p *Place) address(getenv func(string) string) error {
	if at := getenv(envknob.Rendezvous.Name); at != "" {
		if _, _, err := net.SplitHostPort(at); err != nil {
			return fmt.Errorf("cluster: %s is %q; it is the address HOST:PORT of rank 0: %w", envknob.Rendezvous, at, err)
		}
		p.Master = at
		return nil
	}
	host, port := getenv("MASTER_ADDR"), getenv("MASTER_PORT")
	if host != "" && port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("cluster: MASTER_PORT is %q; it is the number of the port at which rank 0 waits for the others", port)
		}
		if getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" { // torchrun itself listens at MASTER_PORT
			n = n%65535 + 1
		}
		p.Master = net.JoinHostPort(host, strconv.Itoa(n))
		return nil
	}
	if p.Launcher == Slurm {
		if host := firstHost(getenv("SLURM_STEP_NODELIST")); host != "" {
			p.Master = net.JoinHostPort(host, strconv.Itoa(portOf(p.JobID)))
		}
	}
	return nil
}

// firstHost is the first host of a list like "gpu[07-09,12],login1": gpu07.
func firstHost(list string) string {
	var host strings.Builder
	for i := 0; i < len(list); i++ {
		switch c := list[i]; c {
		case ',':
			return host.String()
		case '[':
			end := strings.IndexByte(list[i:], ']')
			if end < 0 {
				return ""
			}
			first := list[i+1 : i+end]
			host.WriteString(first[:len(first)-len(strings.TrimLeft(first, "0123456789"))])
			i += end
		default:
			host.WriteByte(c)
		}
	}
	return host.String()
}

// portOf is the port of a job: below the ports that Linux gives to outgoing connections.
func portOf(job string) int {
	return 20000 + int(crc32.ChecksumIEEE([]byte(job))%12000)
}
