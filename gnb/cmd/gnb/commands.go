package main

import (
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/bench"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/onhosts"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/setup"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/watch"
)

// commands is every command, in the order of "gnb help".
func commands() []cli.Command {
	return []cli.Command{
		setup.Install,
		setup.Uninstall,
		setup.Doctor,
		setup.Version,
		dataCommand,
		partitionCommand,
		sampleCommand,
		planCommand,
		inspectCommand,
		trainCommand,
		embedCommand,
		inferCommand,
		predictCommand,
		explainCommand,
		reportCommand,
		onnxCommand,
		sweepCommand,
		scalingCommand,
		setup.Export,
		onhosts.Launch,
		bench.Command,
		runsCommand,
		serveCommand,
		serveModelCommand,
		exportModelCommand,
		buildServerCommand,
		watch.Command,
		kernelCommand,
	}
}
