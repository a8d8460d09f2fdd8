package main

import "context"

// command is one word after "gnb". run gets the words after its name and writes through out; it
// starts by making its flags with out.flags and parsing them with out.parse. The error it returns
// becomes a one-line reason and exit status 1, or 2 when usagef or a flag made it.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, out *output) error
}

// commands is every command, in the order of "gnb help".
func commands() []command {
	return []command{
		installCommand,
		uninstallCommand,
		doctorCommand,
		versionCommand,
		dataCommand,
		partitionCommand,
		sampleCommand,
		planCommand,
		inspectCommand,
		trainCommand,
		inferCommand,
		sweepCommand,
		scalingCommand,
		benchCommand,
		runsCommand,
		serveCommand,
		monitorCommand,
		kernelCommand,
	}
}
