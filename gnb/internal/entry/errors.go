package entry

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Exit prints an error and ends the process with status 1, or as [multigpu.ExitStatus] says after a
// run that was interrupted. In a notebook, the cells and lines that
// the error names come before it, and a worker's stack trace is shown folded. The message of an interrupt is printed like output,
// and not at all if a panel shows it.
func Exit(err error, interrupted bool) {
	if !gonbui.IsNotebook {
		printError(os.Stderr, err, "")
		status := multigpu.ExitStatus(err, interrupted)
		multigpu.Leave(status)
		os.Exit(status)
	}
	gonbui.Sync() // print after all earlier output
	if interrupted {
		// ■ is no failure, so its message is not red, and the panel of a run has shown it.
		if !screen.WasTold(err.Error()) {
			printError(os.Stdout, err, MainFile())
		}
		os.Exit(1)
	}
	if stack := stackOf(err); stack != "" && !envknob.Trace.On() {
		gonbui.DisplayHTML(foldedTrace(stack))
		gonbui.Sync()
	}
	printError(os.Stderr, err, MainFile())
	os.Exit(1)
}

// printError writes an error as one line, the last one, after its trace. cells is the file into which GoNB compiled a
// notebook's cells. A notebook shows the trace folded, so it is printed here only on request.
func printError(w io.Writer, err error, cells string) {
	text := phrase.Sentence(err.Error())
	if trace := Trace(err); trace != "" && (cells == "" || envknob.Trace.On()) {
		fmt.Fprintln(w, trace)
	}
	if places := CellLines(text, cells); places != "" {
		fmt.Fprintln(w, strings.TrimPrefix(places, "\n"))
	}
	fmt.Fprintln(w, text)
}

// Trace returns the text to print above the message of an error caused by a panic in a worker:
// with GNB_TRACE=1 in the environment the stack, innermost call first, otherwise a hint that
// explains how to see it. It is "" for other errors.
func Trace(err error) string {
	stack := stackOf(err)
	if stack != "" && !envknob.Trace.On() {
		return "(GNB_TRACE=1 shows the trace)"
	}
	return stack
}

// stackOf returns the stack of the panic that caused err, without the calls that recovered and
// re-raised it.
func stackOf(err error) string {
	e, ok := errors.AsType[*multigpu.WorkerError](err)
	if !ok {
		return ""
	}
	stack := e.Stack
	if i := strings.LastIndex(stack, "\npanic("); i >= 0 {
		head, _, _ := strings.Cut(stack, "\n")
		stack = head + stack[i:]
	}
	return strings.TrimRight(stack, "\n")
}

// foldedTrace renders a trace as HTML that Jupyter also shows in untrusted notebooks.
func foldedTrace(trace string) string {
	return `<details><summary>trace</summary><pre style="font-size:11px;white-space:pre-wrap">` + phrase.HTML(trace) + `</pre></details>`
}
