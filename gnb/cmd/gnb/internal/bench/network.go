package bench

import (
	"context"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/plan"
)

type networkResult struct {
	plan.Network
	Text string `json:"text"`
}

// benchNetwork answers other machines, or measures the network to one that does.
func benchNetwork(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("network", "Measures the network between this machine and another one. Start it with --listen on one of them, and with --connect on the other, which prints the rate in both directions at once and the time of a round trip, in the words of gnb plan --network. gnb plan --network measure:HOST:PORT measures and plans. Who listens answers anyone who reaches the port, until an interrupt.")
	listen := fs.String("listen", "", "`address` to answer on, such as 0.0.0.0:7744 for other machines")
	connect := fs.String("connect", "", "the other machine: `HOST:PORT`")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	switch {
	case (*listen == "") == (*connect == ""):
		return cli.Usagef("set either --listen, such as 0.0.0.0:7744, or --connect HOST:PORT")
	case *connect != "":
		n, err := plan.MeasureNetwork(ctx, *connect)
		if err != nil {
			return err
		}
		out.Result(networkResult{n, n.String()})
		out.Printf("%s\n", n)
		return nil
	}
	l, err := cli.Listen(ctx, "listen", *listen)
	if err != nil {
		return err
	}
	out.Event("listening", map[string]any{"address": l.Addr().String()})
	out.Printf("answering on %s; an interrupt ends it\n", l.Addr())
	return plan.AnswerNetwork(ctx, l)
}
