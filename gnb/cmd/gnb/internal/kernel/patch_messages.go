package kernel

// messagePatches are the patches of how GoNB receives and answers Jupyter's messages: messages of
// strangers do not end it, a cell's error or ■ stops the cells that wait, and ■ is not an error.
var messagePatches = []patch{
	// The terminal gets errors, one line each. GoNB's own log, with its stack traces, comes with -v=1 and -extra_log.
	{
		"main.go",
		"\tklog.SetLogFilter(UniqueIDFilter{})\n\tif logWriter != nil {\n",
		"\tif *flagExtraLog == \"\" && !klog.V(1).Enabled() {\n\t\tlog.SetPrefix(\"gnb kernel: \")\n\t\tlog.SetFlags(0)\n" +
			"\t\t_ = flag.Set(\"logtostderr\", \"false\")\n\t\t_ = flag.Set(\"stderrthreshold\", \"FATAL\")\n" +
			"\t\tklog.SetOutputBySeverity(\"INFO\", io.Discard)\n\t\tklog.SetOutputBySeverity(\"WARNING\", io.Discard)\n\t\tklog.SetOutputBySeverity(\"ERROR\", firstLines{})\n\t\treturn\n\t}\n" +
			"\tklog.SetLogFilter(UniqueIDFilter{})\n\tif logWriter != nil {\n",
	},
	{"main.go", "// setUpKlog to include prefix", firstLines + "// setUpKlog to include prefix"},
	{"internal/goexec/execcode.go", "\t\tklog.Errorf(\"Failed %q:\\n%s\\n\", cmd, output)\n", ""},
	// A headless kernel has no gopls.
	{"internal/goexec/goexec.go", "\t\tklog.Error(msg)\n", "\t\tklog.Info(msg)\n"},
	// Package zmtp receives messages, and skips those without a valid signature.
	{"internal/kernel/kernel.go", "\t\"github.com/go-zeromq/zmq4\"\n", "\tzmq4 \"github.com/janpfeifer/gonb/internal/zmtp\"\n"},
	{"internal/kernel/messages.go", "\t\"github.com/go-zeromq/zmq4\"\n", "\tzmq4 \"github.com/janpfeifer/gonb/internal/zmtp\"\n"},
	{"internal/kernel/kernel.go", "ShellSocket: SyncSocket{Socket: zmq4.NewRouter(ctx)}", "ShellSocket: SyncSocket{Socket: zmq4.NewRouter(ctx, []byte(connInfo.Key))}"},
	{"internal/kernel/kernel.go", "ControlSocket: SyncSocket{Socket: zmq4.NewRouter(ctx)}", "ControlSocket: SyncSocket{Socket: zmq4.NewRouter(ctx, []byte(connInfo.Key))}"},
	{"internal/kernel/kernel.go", "StdinSocket: SyncSocket{Socket: zmq4.NewRouter(ctx)}", "StdinSocket: SyncSocket{Socket: zmq4.NewRouter(ctx, []byte(connInfo.Key))}"},
	// GoNB ends at the first message that it cannot read.
	{
		"internal/kernel/kernel.go",
		"\t\t\tvar msg Message\n\t\t\tif err != nil {\n\t\t\t\tmsg = &MessageImpl{kernel: k, err: err}\n\t\t\t} else {\n\t\t\t\tmsg = k.FromWireMsg(zmqMsg)\n\t\t\t}\n",
		"\t\t\tif err != nil {\n\t\t\t\treturn // the socket is closed\n\t\t\t}\n\t\t\tmsg := k.FromWireMsg(zmqMsg)\n" +
			"\t\t\tif !msg.Ok() {\n\t\t\t\tklog.Errorf(\"A message on the %s socket was refused: %v\", socketName, msg.Error())\n\t\t\t\tcontinue\n\t\t\t}\n",
	},
	// Jupyter asks a kernel to shut down and also sends it a signal: the second Stop panics.
	{
		"internal/kernel/kernel.go",
		"\tk.Interrupted.Store(true) // Also mark as interrupted.\n\tclose(k.stop)\n",
		"\tif stopped.Swap(true) {\n\t\treturn\n\t}\n\tk.Interrupted.Store(true) // Also mark as interrupted.\n\tclose(k.stop)\n",
	},
	{
		"internal/kernel/kernel.go",
		"// IsStopped returns whether the Kernel has been stopped.\n",
		"// stopped is set by the first call of Stop.\nvar stopped atomic.Bool\n\n// IsStopped returns whether the Kernel has been stopped.\n",
	},
	// An error of one message does not end the kernel.
	{
		"internal/dispatcher/dispatcher.go",
		"\t\t\t\tcase msg := <-ch:\n\t\t\t\t\terr := fn(msg, goExec)\n\t\t\t\t\tif err != nil {\n\t\t\t\t\t\tif !k.IsStopped() {\n" +
			"\t\t\t\t\t\t\tklog.Errorf(\"*** Failed to process incoming message, stopping kernel: %+v\", err)\n\t\t\t\t\t\t\tk.Stop()\n\t\t\t\t\t\t}\n\t\t\t\t\t\treturn\n\t\t\t\t\t}\n",
		"\t\t\t\tcase msg, open := <-ch:\n\t\t\t\t\tif !open {\n\t\t\t\t\t\treturn\n\t\t\t\t\t}\n" +
			"\t\t\t\t\tif err := fn(msg, goExec); err != nil && !k.IsStopped() {\n\t\t\t\t\t\tklog.Errorf(\"A message could not be processed: %v\", err)\n\t\t\t\t\t}\n",
	},
	{
		"internal/dispatcher/dispatcher.go",
		"\t\tgo func() {\n\t\t\terr := msg.DeliverInput()\n\t\t\tif err != nil {\n\t\t\t\tif !k.IsStopped() {\n" +
			"\t\t\t\t\tklog.Errorf(\"*** Failed to deliver input, stopping kernel: %+v\", err)\n\t\t\t\t\tk.Stop()\n\t\t\t\t}\n\t\t\t\treturn\n\t\t\t}\n\t\t}()\n",
		"\t\tgo func() {\n\t\t\tvar err error\n\t\t\tdefer func() {\n\t\t\t\tif err != nil && !k.IsStopped() {\n\t\t\t\t\tklog.Errorf(\"An input could not be delivered: %v\", err)\n\t\t\t\t}\n\t\t\t}()\n" +
			"\t\t\tdefer recovered(\"input_reply\", &err)\n\t\t\terr = msg.DeliverInput()\n\t\t}()\n",
	},
	// A message without the fields of its type is an error, and its sender gets a reply.
	{
		"internal/dispatcher/dispatcher.go",
		"\tdefer func() {\n\t\tklog.V(2).Infof(\"Message %q dispatched.\", msgType)\n\t}()\n",
		"\tdefer recovered(msgType, &err)\n",
	},
	{
		"internal/dispatcher/dispatcher.go",
		"\tswitch msgType {\n\tcase \"kernel_info_request\":\n",
		"\tdefer func() {\n\t\tif err != nil {\n\t\t\treplyInvalid(msg, err)\n\t\t}\n\t}()\n\tdefer recovered(msgType, &err)\n\n\tswitch msgType {\n\tcase \"kernel_info_request\":\n",
	},
	{"internal/dispatcher/dispatcher.go", "\t\tif err := handleCompleteRequest(msg, goExec); err != nil {\n\t\t\tklog.Fatal(err)\n\t\t}\n", "\t\terr = handleCompleteRequest(msg, goExec)\n"},
	{
		"internal/dispatcher/dispatcher.go",
		"\tmsg.Kernel().CallInterruptSubscribers() // Interrupt current runs.\n\n\tcontent := msg.ComposedMsg().Content.(map[string]any)\n",
		"\tcontent := msg.ComposedMsg().Content.(map[string]any)\n\tmsg.Kernel().CallInterruptSubscribers() // Interrupt current runs.\n\n",
	},
	// gopls takes seconds to answer the first Tab. JupyterLab waits for one second, by default.
	{
		"internal/dispatcher/dispatcher.go",
		"\terr = goExec.AutoCompleteOptionsInCell(lines, usedLines, cursorLine, cursorCol, reply)\n\treturn\n}\n",
		"\terr = completeSoon(goExec, lines, usedLines, cursorLine, cursorCol, reply)\n\treturn\n}\n" + completeSoon,
	},
	{"internal/dispatcher/dispatcher.go", "\t\tif err = handleExecuteRequest(", "\t\tediting <- struct{}{}\n\t\t<-editing\n\t\tif err = handleExecuteRequest("},
	{"internal/dispatcher/dispatcher.go", "\t\tif err = HandleInspectRequest(", "\t\tediting <- struct{}{}\n\t\t<-editing\n\t\tif err = HandleInspectRequest("},
	{
		"internal/dispatcher/dispatcher.go",
		"\t\"github.com/janpfeifer/gonb/internal/goexec\"\n\t\"github.com/janpfeifer/gonb/internal/kernel\"\n",
		"\t\"github.com/janpfeifer/gonb/internal/cellnote\"\n\t\"github.com/janpfeifer/gonb/internal/goexec\"\n\t\"github.com/janpfeifer/gonb/internal/kernel\"\n",
	},
	// GoNB waits for gopls for 8 s, and shows the context's error as the name's documentation.
	{
		"internal/goexec/inspect.go",
		"\tif err != nil {\n\t\tparts := []string{errors.Cause(err).Error()}\n",
		"\tif errors.Is(err, context.DeadlineExceeded) {\n\t\treturn kernel.MIMEMap{string(protocol.MIMETextPlain): \"gopls, which explains names, is still reading the library: try again in a few seconds\"}, nil\n\t}\n" +
			"\tif err != nil {\n\t\tparts := []string{errors.Cause(err).Error()}\n",
	},
	// Cells that wait when a cell fails or is interrupted are not run.
	{"internal/dispatcher/dispatcher.go", "\tmsg    kernel.Message\n\tgoExec *goexec.State\n}\n", "\tmsg    kernel.Message\n\tgoExec *goexec.State\n\tat     time.Time // when the message arrived\n}\n\n" + abortCells},
	{"internal/dispatcher/dispatcher.go", "&shellMsgParams{msg: msg, goExec: goExec}", "&shellMsgParams{msg: msg, goExec: goExec, at: time.Now()}"},
	{"internal/dispatcher/dispatcher.go", "\t\"strings\"\n\t\"sync\"\n", "\t\"strings\"\n\t\"sync\"\n\t\"time\"\n"},
	{
		"internal/dispatcher/dispatcher.go",
		"\t\t\t\tmsgType := msg.ComposedMsg().Header.MsgType\n\t\t\t\tklog.V(1).Infof(\"Dispatcher: handling %q\", msgType)\n\t\t\t\terr := handleBusyMessage(params.msg, params.goExec)\n",
		"\t\t\t\tmsgType := params.msg.ComposedMsg().Header.MsgType\n\t\t\t\tklog.V(1).Infof(\"Dispatcher: handling %q\", msgType)\n" +
			"\t\t\t\tif msgType == \"execute_request\" && !params.at.After(abortUntil) {\n\t\t\t\t\tabort(params.msg)\n\t\t\t\t\tcontinue\n\t\t\t\t}\n" +
			"\t\t\t\terr := handleBusyMessage(params.msg, params.goExec)\n",
	},
	{
		"internal/dispatcher/dispatcher.go",
		"\t// Final execution result.\n\tif executionErr == nil {\n",
		"\tinterrupted := msg.Kernel().Interrupted.Load()\n\tif all, given := content[\"stop_on_error\"].(bool); interrupted || executionErr != nil && (all || !given) {\n\t\tabortUntil = time.Now()\n\t}\n\n" +
			"\t// Final execution result.\n\tif executionErr == nil {\n",
	},
	// ■ is no error: the reply says that the cell did not end by itself, and its output has nothing red.
	{
		"internal/dispatcher/dispatcher.go",
		"\t} else {\n\t\tname, value, traceback := goexec.JupyterErrorSplit(executionErr)\n",
		"\t} else if interrupted {\n\t\treplyContent[\"status\"] = \"error\"\n\t\treplyContent[\"ename\"] = \"Interrupted\"\n\t\treplyContent[\"evalue\"] = \"the cell was interrupted\"\n\t\treplyContent[\"traceback\"] = []string{}\n" +
			"\t} else {\n\t\tname, value, traceback := goexec.JupyterErrorSplit(executionErr)\n",
	},
	{"internal/dispatcher/dispatcher.go", "\t\t\tmsg.Kernel().CallInterruptSubscribers()\n", "\t\t\tmsg.Kernel().Interrupted.Store(true)\n\t\t\tmsg.Kernel().CallInterruptSubscribers()\n"},
	{
		"internal/goexec/errorpublish.go",
		"\tnbErr := newGonbErrors(s, fileToCellIdAndLine, errorMsg, err)\n",
		"\tif msg != nil && msg.Kernel() != nil && msg.Kernel().Interrupted.Load() {\n\t\treturn err // ■ ended the compiler\n\t}\n\tnbErr := newGonbErrors(s, fileToCellIdAndLine, errorMsg, err)\n",
	},
	{
		"internal/goexec/execcode.go",
		"\tklog.V(2).Infof(\"ExecuteCell: after s.Compile()\")\n",
		"\tif msg != nil && msg.Kernel().Interrupted.Load() {\n\t\treturn errors.New(\"interrupted while the cell was compiled\")\n\t}\n",
	},
	{
		"internal/jpyexec/jpyexec.go",
		"\tif exec.stdinContent != nil {\n\t\texec.handleStaticInput()\n",
		"\tif exec.Msg.Kernel().Interrupted.Load() { // before the subscription\n\t\texec.Msg.Kernel().CallInterruptSubscribers()\n\t}\n\n\tif exec.stdinContent != nil {\n\t\texec.handleStaticInput()\n",
	},
	// A cell's status already holds its error, so its output omits it; "!command" has only its output. An
	// interrupted program that handles the signal says so itself.
	{
		"internal/jpyexec/jpyexec.go",
		"\t\tif exec.Msg.Kernel().Interrupted.Load() {\n\t\t\terrMsg = \"^C\\n\" + errMsg\n\t\t}\n\t\t_ = kernel.PublishWriteStream(exec.Msg, kernel.StreamStderr, errMsg)\n",
		"\t\tif exec.Msg.Kernel().Interrupted.Load() {\n\t\t\tif status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {\n\t\t\t\t_ = kernel.PublishWriteStream(exec.Msg, kernel.StreamStdout, \"interrupted\\n\")\n\t\t\t}\n" +
			"\t\t} else if !exec.useNamedPipes { // not a cell\n\t\t\t_ = kernel.PublishWriteStream(exec.Msg, kernel.StreamStderr, errMsg)\n\t\t}\n",
	},
}

// abortCells is the Go code that a patch adds to GoNB's dispatcher.
const abortCells = `// abortUntil is when the last cell failed or was interrupted: the cells sent before are not run. Only the
// goroutine that runs cells uses it.
var abortUntil time.Time

// abort answers an execute_request without running it, as Jupyter's protocol has it for the cells after a failed
// one.
func abort(msg kernel.Message) {
	if kernel.PublishKernelStatus(msg, kernel.StatusBusy) != nil {
		return
	}
	_ = msg.Reply("execute_reply", map[string]any{"status": "aborted", "ename": "Aborted", "evalue": "an earlier cell failed or was interrupted", "traceback": []string{}})
	_ = kernel.PublishKernelStatus(msg, kernel.StatusIdle)
}

// recovered turns a panic into an error: that of a message without the fields of its type.
func recovered(msgType string, err *error) {
	if r := recover(); r != nil {
		*err = errors.Errorf("the message %q is not valid: %v", msgType, r)
	}
}

// replyInvalid answers a request that could not be handled.
func replyInvalid(msg kernel.Message, err error) {
	msgType := msg.ComposedMsg().Header.MsgType
	if name, ok := strings.CutSuffix(msgType, "_request"); ok {
		_ = msg.Reply(name+"_reply", map[string]any{"status": "error", "ename": "InvalidRequest", "evalue": err.Error(), "traceback": []string{err.Error()}})
	}
}
`

// firstLines is the Go code that a patch adds to GoNB's main package.
const firstLines = `// firstLines writes the first line of each error of the log, without the log's header, to the terminal.
type firstLines struct{}

func (firstLines) Write(p []byte) (int, error) {
	_, text, ok := strings.Cut(string(p), "] ")
	if !ok {
		text = string(p)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	log.Print(line)
	return len(p), nil
}

`

// completeSoon is the Go code that a patch adds to GoNB's dispatcher.
const completeSoon = `
// editing holds a token while gopls is asked to complete a name. Running a cell and explaining a name wait for it.
var editing = make(chan struct{}, 1)

// completeSoon answers by gopls, or after 0.8 s, while gopls starts, with the names that package cellnote knows. If it
// knows none, gopls has two seconds more.
func completeSoon(goExec *goexec.State, lines []string, usedLines Set[int], line, col int, reply *kernel.CompleteReply) error {
	own, late := *reply, time.After(800*time.Millisecond)
	var done chan error // nil if gopls has not answered the last question yet
	select {
	case editing <- struct{}{}:
		done = make(chan error, 1)
		go func() {
			defer func() { <-editing }()
			var err error
			defer func() { done <- err }()
			defer recovered("complete_request", &err)
			err = goExec.AutoCompleteOptionsInCell(lines, usedLines, line, col, &own)
		}()
	case <-late:
		late = time.After(0)
	}
	for range 2 {
		select {
		case err := <-done:
			if len(own.Matches) > 0 {
				*reply = own
				return err
			}
			done = nil
		case <-late:
		}
		matches, n := cellnote.Complete(lines[line][:min(col, len(lines[line]))], goExec.TempDir, strings.Split("` + rooms + `", "|"))
		if len(matches) > 0 {
			reply.Matches = matches
			reply.CursorStart -= n
			return nil
		}
		if done == nil {
			return nil
		}
		late = time.After(2 * time.Second)
	}
	return nil
}
`
