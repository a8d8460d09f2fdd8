package clustertest

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// slurmNodes is the number of nodes of a Slurm.
const slurmNodes = 4

// SlurmCluster is a running Slurm of the nodes n1 to n4, all on this machine.
type SlurmCluster struct {
	Dir string // its configuration, state and logs
	bin string
}

// Slurm starts a Slurm of four nodes with 8 (pretended) processors each, or skips the test. At the test's
// end every process that belongs to it ends, jobs included. It takes about a second to start.
//
// Its ranks get the SLURM_* variables; Debian's Slurm has no PMIx. All nodes have this machine's host name.
// A requeued job starts again after 5 s.
func Slurm(t testing.TB) *SlurmCluster {
	t.Helper()
	s := &SlurmCluster{bin: tools(t, "slurm")}
	dir, err := os.MkdirTemp("", "slurm") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	s.Dir = dir
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	end := keep(t, dir)
	t.Cleanup(end)
	if err := s.start(); err != nil {
		t.Fatalf("Slurm does not start: %v\nslurmctld: %s\nslurmd: %s\nall daemons: %s", err,
			tail(filepath.Join(dir, "slurmctld.log")), tail(filepath.Join(dir, "slurmd.n1.log")), tail(filepath.Join(dir, "daemons.log")))
	}
	return s
}

// Env returns an environment in which srun, sbatch and Slurm's other commands use this Slurm.
func (s *SlurmCluster) Env() []string {
	env := withPath(os.Environ(), s.bin)
	return append(env, "SLURM_CONF="+filepath.Join(s.Dir, "slurm.conf"), marker+"="+s.Dir)
}

// Setenv gives the test's own environment what [SlurmCluster.Env] has, until its end.
func (s *SlurmCluster) Setenv(t testing.TB) {
	t.Helper()
	for _, kv := range s.Env() {
		if name, value, _ := strings.Cut(kv, "="); os.Getenv(name) != value {
			t.Setenv(name, value)
		}
	}
}

// Bin is the folder of Slurm's commands.
func (s *SlurmCluster) Bin() string { return s.bin }

// Command returns one of Slurm's commands: "srun", "sbatch", "scancel", "squeue", "scontrol", "sinfo".
func (s *SlurmCluster) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env = s.Env()
	return cmd
}

// RunIn returns the command that runs a program as perNode ranks on each node of an allocation, started there by this
// implementation's mpirun. Ranks exchange data over the loopback interface, since those of several nodes are on this machine.
func (m *MPI) RunIn(s *SlurmCluster, nodes, perNode int, program string, args ...string) *exec.Cmd {
	run := append([]string{"-N" + itoa(nodes), "--ntasks-per-node=" + itoa(perNode), filepath.Join(m.Bin, "mpirun")}, m.apart("lo", "lo")...)
	cmd := s.Command("salloc", append(append(run, program), args...)...)
	cmd.Env = append(m.Env(), s.Env()...)
	return cmd
}

func (s *SlurmCluster) start() error {
	ports, err := freePorts(1 + slurmNodes)
	if err != nil {
		return err
	}
	if err := s.configure(ports); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(s.Dir, name) }
	conf := in("slurm.conf")
	daemons := [][]string{
		{
			// --force: the temporary directory may be closed to other users, which munged refuses.
			"munged", "--foreground", "--force", "--key-file=" + in("munge.key"), "--socket=" + in("munge.sock"), "--pid-file=" + in("munged.pid"),
			"--log-file=" + in("munged.log"), "--seed-file=" + in("munged.seed"),
		},
		{"slurmctld", "-D", "-f", conf},
	}
	for node := range slurmNodes {
		daemons = append(daemons, []string{"slurmd", "-D", "-f", conf, "-N", "n" + itoa(node+1), "-d", filepath.Join(s.bin, "slurmstepd")})
	}
	for _, daemon := range daemons {
		cmd := s.Command(daemon[0], daemon[1:]...)
		machine.OwnGroup(cmd)
		said, err := os.OpenFile(in("daemons.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		cmd.Stdout, cmd.Stderr = said, said
		err = cmd.Start()
		_ = said.Close() // the daemon has its own descriptor
		if err != nil {
			return err
		}
		go func() { _ = cmd.Wait() }()
		if daemon[0] == "munged" {
			if err := until(func() bool { _, err := os.Stat(in("munge.sock")); return err == nil }); err != nil {
				return fmt.Errorf("munged: %w", err)
			}
		}
	}
	return until(func() bool {
		out, err := s.Command("sinfo", "-h", "-N", "-o", "%T").Output()
		return err == nil && strings.Count(string(out), "idle") == slurmNodes
	})
}

func (s *SlurmCluster) configure(ports []int) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	name := "root"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key)
	plugins, err := filepath.Glob(filepath.Join(s.bin, "../../usr/lib/*/slurm-wlm/auth_munge.so"))
	if err != nil || len(plugins) == 0 {
		return fmt.Errorf("there are no plugins of Slurm beside %s", s.bin)
	}
	dirs, nodes := []string{"state"}, ""
	for i, port := range ports[1:] {
		dirs = append(dirs, "spool.n"+itoa(i+1))
		nodes += fmt.Sprintf("NodeName=n%d NodeAddr=127.0.0.1 NodeHostname=%s Port=%d CPUs=8 RealMemory=500\n", i+1, host, port)
	}
	for _, dir := range dirs {
		if err := os.Mkdir(filepath.Join(s.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(s.Dir, 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"munge.key":      string(key),
		"plugstack.conf": "",
		"slurm.conf": strings.NewReplacer("$DIR", s.Dir, "$HOST", host, "$USER", name, "$PLUGINS", filepath.Dir(plugins[0]),
			"$PORT", itoa(ports[0]), "$NODES", nodes).Replace(slurmConf),
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// slurmConf configures the nodes without cgroups, accounting and PMIx. cred_expire is also the time after which a
// requeued job starts again (2 minutes by default).
const slurmConf = `ClusterName=test
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$PORT
PluginDir=$PLUGINS
AuthType=auth/munge
AuthInfo=socket=$DIR/munge.sock,cred_expire=5
CryptoType=crypto/munge
SlurmUser=$USER
SlurmdUser=$USER
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool.%n
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/slurmd.%n.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdLogFile=$DIR/slurmd.%n.log
ReturnToService=2
KillWait=5
$NODESPartitionName=main Nodes=ALL Default=YES State=UP OverSubscribe=YES
`

// freePorts returns ports of the loopback interface at which no process listens.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// until waits for a condition, for at most a minute.
func until(ok func() bool) error {
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if ok() {
			return nil
		}
	}
	return fmt.Errorf("not ready after a minute")
}
