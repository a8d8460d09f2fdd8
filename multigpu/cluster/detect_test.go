package cluster

import (
	"strconv"
	"strings"
	"testing"
)

// env parses "A=1 B=2" into a function like os.Getenv.
func env(text string) func(string) string {
	vars := map[string]string{}
	for _, e := range strings.Fields(text) {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	return func(name string) string { return vars[name] }
}

const (
	slurmStep = "SLURM_JOB_ID=71 SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2,1 SLURM_STEP_NODELIST=n[07-08] SLURM_NTASKS=3 "
	openMPI   = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=3453550593 "
	mpichVars = "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4 "
	torchVars = "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 "
)

func TestDetect(t *testing.T) {
	slurm := Place{Slurm, 2, 3, 0, 1, "71.0", "n07:" + strconv.Itoa(portOf("71.0"))}
	open := Place{OpenMPI, 1, 4, 1, 2, "3453550593", ""}
	mpich := Place{MPICH, 3, 4, 3, 4, "", ""}
	torch := Place{Torchrun, 5, 8, 1, 4, " 29500", "10.0.0.1:29500"}
	for _, c := range []struct {
		name, env string
		want      *Place
	}{
		{"no launcher", "HOME=/root", nil},
		{"srun", slurmStep, &slurm},
		{"a batch script", "SLURM_JOB_ID=71 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=3 SLURM_TASKS_PER_NODE=2,1", nil},
		{"srun of one task", "SLURM_JOB_ID=71 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1", nil},
		{"srun without local numbers", "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2", &Place{Slurm, 1, 2, -1, 0, "7.1", ""}},
		{"mpirun of Open MPI", openMPI, &open},
		{"mpirun of MPICH", mpichVars, &mpich},
		{"PMI of another launcher", "PMI_RANK=0 PMI_SIZE=2", &Place{MPICH, 0, 2, -1, 0, "", ""}},
		{"torchrun's variables", torchVars, &torch},
		{"world of 1", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", nil},
		{"RANK of some other program", "RANK=colonel", nil},
		{"WORLD_SIZE of some other program", "WORLD_SIZE=big", nil},

		{"mpirun of Open MPI in a step", slurmStep + openMPI, &open},
		{"mpirun of MPICH in a step", slurmStep + mpichVars, &mpich},
		{"srun --mpi=pmi2", slurmStep + "PMI_RANK=2 PMI_SIZE=3", &slurm},
		{"torchrun in a step", slurmStep + torchVars + "TORCHELASTIC_RUN_ID=a TORCHELASTIC_RESTART_COUNT=1", &Place{Torchrun, 5, 8, 1, 4, "a 29500", "10.0.0.1:29500"}},
		{"torchrun in mpirun", openMPI + torchVars + "TORCHELASTIC_RUN_ID=a", &Place{Torchrun, 5, 8, 1, 4, "a 29500", "10.0.0.1:29500"}},
		{"torchrun's own store", torchVars + "TORCHELASTIC_USE_AGENT_STORE=True", &Place{Torchrun, 5, 8, 1, 4, " 29500", "10.0.0.1:29501"}},
		{"variables set by hand in a step of one task", "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 " + torchVars, &torch},
		{"a script that sets RANK from Slurm's", slurmStep + "RANK=2 WORLD_SIZE=3 MASTER_ADDR=n07 MASTER_PORT=1234", &Place{Slurm, 2, 3, 0, 1, "71.0", "n07:1234"}},

		{"choosing Slurm", slurmStep + openMPI + "GNB_LAUNCHER=slurm", &slurm},
		{"choosing Open MPI", openMPI + "RANK=5 WORLD_SIZE=8 GNB_LAUNCHER=openmpi", &open},
		{"choosing MPICH", openMPI + mpichVars + "GNB_LAUNCHER=MPICH", &mpich},
		{"choosing torchrun", openMPI + torchVars + "GNB_LAUNCHER=torchrun", &torch},
		{"choosing none", openMPI + "GNB_LAUNCHER=none", nil},
		{"rendezvous", slurmStep + "GNB_RENDEZVOUS=[fe80::1]:70", &Place{Slurm, 2, 3, 0, 1, "71.0", "[fe80::1]:70"}},
	} {
		got, err := detect(env(c.env))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestDetectRefuses(t *testing.T) {
	for _, c := range []struct{ name, env, want string }{
		{"two launchers", openMPI + torchVars, "OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=4 of Open MPI, and RANK=5 and WORLD_SIZE=8 of torchrun; unset those of one, or set GNB_LAUNCHER to openmpi, torchrun or none"},
		{"two MPIs", openMPI + mpichVars, "PMI_RANK=3 and PMI_SIZE=4 of MPICH"},
		{"Slurm and torchrun's variables", slurmStep + torchVars, "SLURM_PROCID=2 and SLURM_STEP_NUM_TASKS=3 of Slurm"},
		{"a left-over world of 1", openMPI + "RANK=0 WORLD_SIZE=1", "of torchrun"},
		{"PMI that disagrees", slurmStep + "PMI_RANK=0 PMI_SIZE=2", "PMI_RANK=0 and PMI_SIZE=2 of MPICH"},
		{"rank beyond the world", "RANK=2 WORLD_SIZE=2", `RANK, which torchrun sets, is "2"; it is a number from 0 to 1`},
		{"negative rank", "PMI_RANK=-1 PMI_SIZE=2", `PMI_RANK, which MPICH sets, is "-1"`},
		{"no rank", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK is not"},
		{"world of nothing", "RANK=0 WORLD_SIZE=0", "from 1 to"},
		{"huge world", "RANK=0 WORLD_SIZE=9999999999999999999", "from 1 to"},
		{"local rank beyond", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", "LOCAL_RANK"},
		{"local world beyond", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=3", "LOCAL_WORLD_SIZE"},
		{"tasks per node", strings.Replace(slurmStep, "=2,1", "=2(x", 1), "SLURM_STEP_TASKS_PER_NODE"},
		{"node beyond the list", strings.Replace(slurmStep, "NODEID=1", "NODEID=2", 1), "SLURM_NODEID"},
		{"an unknown launcher", "GNB_LAUNCHER=pbs", `GNB_LAUNCHER is "pbs"; it is slurm, openmpi, mpich, torchrun or none`},
		{"a launcher that did not start it", openMPI + "GNB_LAUNCHER=slurm", "SLURM_PROCID and SLURM_STEP_NUM_TASKS, which Slurm sets, are not set"},
		{"a bad port", strings.Replace(torchVars, "29500", "x", 1), "MASTER_PORT"},
		{"a bad rendezvous", openMPI + "GNB_RENDEZVOUS=host", "GNB_RENDEZVOUS"},
	} {
		p, err := detect(env(c.env))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", c.name, p, err, c.want)
		}
	}
}

func TestTasksOn(t *testing.T) {
	for node, want := range map[string]int{"0": 2, "2": 2, "3": 1, "4": 4, "5": 4} {
		if n, err := tasksOn("2(x3),1,4(x2)", node); err != nil || n != want {
			t.Errorf("node %s has %d tasks, want %d: %v", node, n, want, err)
		}
	}
	for _, bad := range []string{"", "0", "x", "2(x0)", "-1", "2(x", "1,,1"} {
		if n, err := tasksOn(bad, "1"); err == nil {
			t.Errorf("%q has %d tasks on node 1", bad, n)
		}
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"n1": "n1", "n1,n2": "n1", "n[1-2]": "n1", "gpu[007-090,99],x": "gpu007", "a[3]b[5-6]-ib": "a3b5-ib", "": "", "n[1": "",
	} {
		if got := firstHost(list); got != want {
			t.Errorf("the first host of %q is %q, want %q", list, got, want)
		}
	}
}

func FuzzDetect(f *testing.F) {
	for _, s := range []string{slurmStep, openMPI, mpichVars, torchVars, slurmStep + torchVars} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := detect(env(s))
		if err != nil || p == nil {
			return
		}
		if p.World < 2 || p.Rank < 0 || p.Rank >= p.World || p.LocalWorld < 0 || p.LocalWorld > p.World || p.LocalWorld > 0 && (p.LocalRank < 0 || p.LocalRank >= p.LocalWorld) {
			t.Errorf("%q is %+v", s, p)
		}
	})
}
