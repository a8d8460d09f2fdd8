package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/internal/machine"
)

// torchrun starts its arguments as a number of ranks, with torchrun's variables, and ends as rank 0 does. Only rank 0
// prints; the others may print errors.
const torchrun = `#!/bin/sh
export WORLD_SIZE=%[1]d LOCAL_WORLD_SIZE=%[1]d MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 GNB_LAUNCHER=torchrun TORCHELASTIC_RUN_ID=$$
rank=1
while [ $rank -lt %[1]d ]; do
  RANK=$rank LOCAL_RANK=$rank "%[2]s" "$@" >/dev/null &
  rank=$((rank+1))
done
RANK=0 LOCAL_RANK=0 "%[2]s" "$@"
status=$?
wait
exit $status
`

// ranks trains with ranks that have torchrun's variables: with one rank, with two that share a GPU,
// and with one for each GPU if there are several. Several ranks train on independent batches, and
// on cooperative batches, whose rows NCCL moves.
func (c *checker) ranks(r *report) error {
	if !c.trains() {
		return nil
	}
	gpus, err := machine.GPUSlots()
	if err != nil && !c.interpreted {
		return err
	}
	sharing := []string{"GNB_CUDA_SHARE=1", "CUDA_VISIBLE_DEVICES=0"}
	for _, k := range []struct {
		name  string
		world int
		may   bool
		env   []string
	}{
		{"1 rank", 1, false, nil},
		{"2 ranks on one GPU", 2, true, sharing},
		{fmt.Sprintf("%d ranks", len(gpus)), len(gpus), false, nil},
	} {
		if k.name != "1 rank" && k.world < 2 {
			continue
		}
		program := filepath.Join(c.scratch, fmt.Sprintf("ranks-%d", k.world))
		if err := os.WriteFile(program, fmt.Appendf(nil, torchrun, k.world, filepath.Join(c.dir, c.gnb)), 0o755); err != nil { //nolint:gosec // a script
			return err
		}
		args := []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "4", "--workers", fmt.Sprint(k.world)}
		runs := []parityRun{{name: k.name, may: k.may, env: k.env, args: args, program: program}}
		if k.world > 1 {
			runs = append(runs, parityRun{name: k.name + ", cooperative", may: k.may, env: k.env, args: append(args[:len(args):len(args)], "--cooperative"), program: program})
		}
		for _, p := range runs {
			p.name += ", torchrun's variables"
			if err := c.compare(r, p); err != nil {
				return err
			}
		}
	}
	return nil
}
