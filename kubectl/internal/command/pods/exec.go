package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/streaming/pkg/httpstream"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/remote"
	"kctl/proto/core"
)

// attachOptions is what exec, attach and `run -it` share.
type attachOptions struct {
	*frame.CLI
	container string
	stdin     bool
	tty       bool
	quiet     bool
	detach    string // the keys that end an attach; the usual ones if empty
	logFirst  bool   // show what was said before anyone attached
	wait      podWait
	heard     atomic.Bool // whether anything came out of the container
	left      bool        // whether the user detached
	removed   bool        // the pod is deleted when the session ends
}

// activityWriter notes that something was written.
type activityWriter struct {
	io.Writer
	heard *atomic.Bool
}

func (l activityWriter) Write(p []byte) (int, error) {
	l.heard.Store(true)
	return l.Writer.Write(p)
}

func (j *attachOptions) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&j.container, "container", "c", "", "Container name.")
	fs.BoolVarP(&j.stdin, "stdin", "i", false, "Pass stdin to the container")
	fs.BoolVarP(&j.tty, "tty", "t", false, "Stdin is a TTY")
	fs.BoolVarP(&j.quiet, "quiet", "q", false, "Only print output from the remote session")
}

func addDetachKeys(fs *pflag.FlagSet, keys *string) {
	fs.StringVar(keys, "detach-keys", remote.DetachKeys,
		"The keys that end the session and leave the container running, with -it: characters, ctrl-X or DEL, with commas between them.")
}

func newExec(c *frame.CLI) *cobra.Command {
	j := &attachOptions{CLI: c}
	var selected lookup.Selection
	cmd := &cobra.Command{
		Use:     "exec (POD | pod/NAME) [-c CONTAINER] [-it] -- COMMAND [ARGS...]",
		Short:   "Execute a command in a container",
		Example: "  kctl exec web -- ls /\n  kctl exec -it web -- sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if selected.FromFiles() {
				if dash != 0 {
					return errors.New("resource/name arguments cannot be provided when a path is specified")
				}
				named, err := fileNamed(cmd.Context(), c, &selected)
				if err != nil {
					return err
				}
				args, dash = append([]string{named}, args...), 1
			}
			switch {
			case len(args) == 0 || dash == 0:
				return errors.New("pod, type/name or --filename must be specified")
			case dash < 0 && len(args) > 1:
				return frame.UsageError(cmd, "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead")
			case dash > 1:
				return frame.UsageError(cmd, "exactly one POD is required, got %d", dash)
			case len(args) == 1:
				return errors.New("you must specify at least one command for the container")
			}
			if err := j.wait.check(); err != nil {
				return frame.UsageError(cmd, "%s", err)
			}
			return j.exec(cmd.Context(), args[0], args[1:])
		},
	}
	j.add(cmd)
	selected.AddFilenames(cmd.Flags(), "to use to exec into the resource")
	j.wait.add(cmd.Flags(), usualPodWait)
	return cmd
}

// fileNamed is the one object, as TYPE/NAME, that a file names.
func fileNamed(ctx context.Context, c *frame.CLI, selected *lookup.Selection) (string, error) {
	targets, err := lookup.Targets(ctx, c, selected, nil, "")
	switch {
	case err != nil:
		return "", err
	case len(targets) != 1:
		return "", errors.New("cannot exec into multiple objects at a time")
	}
	return targets[0].FullName() + "/" + targets[0].ObjectName, nil
}

func newAttach(c *frame.CLI) *cobra.Command {
	j := &attachOptions{CLI: c}
	cmd := &cobra.Command{
		Use:     "attach (POD | pod/NAME) [-c CONTAINER] [-it]",
		Short:   "Attach to a running container",
		Example: "  kctl attach web\n  kctl attach -it web",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("at least 1 argument is required for attach")
			}
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			if err := j.wait.check(); err != nil {
				return frame.UsageError(cmd, "%s", err)
			}
			pod, err := j.runningPod(cmd.Context(), name)
			if err != nil {
				return err
			}
			return j.attach(cmd.Context(), pod)
		},
	}
	j.add(cmd)
	addDetachKeys(cmd.Flags(), &j.detach)
	j.wait.add(cmd.Flags(), usualPodWait)
	return cmd
}

// runningPod reads the pod, which must not have ended.
func (j *attachOptions) runningPod(ctx context.Context, arg string) (*core.Pod, error) {
	pod, _, err := podOf(ctx, j.CLI, arg, j.wait)
	if err != nil {
		return nil, err
	}
	if core.Ended(pod.Status.Phase) {
		return nil, fmt.Errorf("cannot exec into or attach to a container in a completed pod; current phase is %s", pod.Status.Phase)
	}
	return pod, nil
}

func (j *attachOptions) exec(ctx context.Context, arg string, command []string) error {
	pod, err := j.runningPod(ctx, arg)
	if err != nil {
		return err
	}
	container, err := chooseContainer(j.messageWriter(), pod, j.container)
	if err != nil {
		return err
	}
	return j.connect(ctx, pod, "exec", container, command, nil)
}

func (j *attachOptions) attach(ctx context.Context, pod *core.Pod) error {
	container, err := chooseContainer(j.messageWriter(), pod, j.container)
	if err != nil {
		return err
	}
	keys, err := remote.ParseKeys(j.detach)
	if err != nil {
		return err
	}
	j.checkTTY(pod, container)
	if !j.quiet {
		fmt.Fprintln(j.Err,
			"All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed "+
				"through the command prompt.")
	}
	if j.stdin && !j.quiet && j.tty {
		fmt.Fprintln(j.Err, "If you don't see a command prompt, try pressing enter.")
	}
	err = j.connect(ctx, pod, "attach", container, nil, keys)
	if !errors.Is(err, remote.ErrDetached) {
		return err
	}
	j.left = true
	j.sayResume(pod, container)
	return nil
}

// sayResume says how to come back to a container that goes on. Without a terminal there is
// nobody to come back, and what is written there is the container's alone.
func (j *attachOptions) sayResume(pod *core.Pod, container string) {
	if j.quiet || !j.tty || j.removed {
		return
	}
	if slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == container }) {
		fmt.Fprintf(j.Out,
			"Session ended, the ephemeral container will not be restarted but may be reattached using '%s attach %s -c %s -n %s -i "+
				"-t' if it is still running\n", j.Name, pod.Name, container, pod.Namespace)
		return
	}
	fmt.Fprintf(j.Out, "Session ended, resume using '%s attach %s -c %s -n %s -i -t' command\n", j.Name, pod.Name, container, pod.Namespace)
}

// attachOrLog attaches, or shows the log instead if the container was faster: it
// has ended, or its output came before anyone attached.
func (j *attachOptions) attachOrLog(ctx context.Context, pod *core.Pod, container string) error {
	j.container = container
	earlier := &lengthWriter{out: j.Out}
	if j.logFirst {
		if err := showLog(ctx, j.CLI, earlier, pod, container); err != nil && !j.quiet {
			j.Warn("couldn't fetch pre-attach logs: %v", err)
		}
	}
	err := j.attach(ctx, pod)
	rest := &skipWriter{out: j.Out, skip: earlier.length}
	var code frame.ExitCode
	switch {
	case err == nil && !j.left && !j.heard.Load() && !startsAgain(pod, container):
		if j.stdin && !hasOneInput(pod, container) {
			return showLog(ctx, j.CLI, rest, pod, container)
		}
		return followLog(ctx, j.CLI, rest, pod, container)
	case err == nil || errors.As(err, &code) || ctx.Err() != nil:
		return err
	}
	if !j.quiet {
		j.Warn("couldn't attach to pod/%s, falling back to streaming logs: %v", pod.Name, err)
	}
	return followLog(ctx, j.CLI, rest, pod, container)
}

// hasOneInput tells whether a container's input ends with that of the first who attached.
// Otherwise the end of the input ends the session alone, and the container goes on.
func hasOneInput(pod *core.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container && c.StdinOnce })
}

// lengthWriter counts what is written.
type lengthWriter struct {
	out    io.Writer
	length int
}

func (w *lengthWriter) Write(p []byte) (int, error) {
	n, err := w.out.Write(p)
	w.length += n
	return n, err
}

// skipWriter leaves out the beginning of what is written, which was shown already.
type skipWriter struct {
	out  io.Writer
	skip int
}

func (w *skipWriter) Write(p []byte) (int, error) {
	skipped := min(w.skip, len(p))
	w.skip -= skipped
	n, err := w.out.Write(p[skipped:])
	return skipped + n, err
}

// startsAgain tells whether a container is restarted when it has ended; ephemeral
// ones never are.
func startsAgain(pod *core.Pod, container string) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyAlways &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
}

// showLog writes the log, as far as there is one, of a container that nobody could attach to, or not yet.
func showLog(ctx context.Context, c *frame.CLI, out io.Writer, pod *core.Pod, container string) error {
	return wholeLogTo(c, out).copyLog(ctx, logSource{pod.Namespace, pod.Name, container})
}

// followLog does, too, and goes on until the container has ended.
func followLog(ctx context.Context, c *frame.CLI, out io.Writer, pod *core.Pod, container string) error {
	log := wholeLogTo(c, out)
	log.follow = true
	return log.copyLog(ctx, logSource{pod.Namespace, pod.Name, container})
}

func wholeLogTo(c *frame.CLI, out io.Writer) *logsOptions {
	there := *c
	there.Out = out
	return &logsOptions{CLI: &there, tail: noTail}
}

// messageWriter returns where kctl's own messages go during a session: nowhere,
// with --quiet.
func (j *attachOptions) messageWriter() io.Writer {
	if j.quiet {
		return io.Discard
	}
	return j.Err
}

// checkTTY does without a terminal if the container was made without one.
func (j *attachOptions) checkTTY(pod *core.Pod, container string) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name == container && j.tty && !c.TTY {
			j.tty = false
			if !j.quiet {
				fmt.Fprintf(j.Err, "error: Unable to use a TTY - container %s did not allocate one\n", container)
			}
		}
	}
}

func (j *attachOptions) connect(ctx context.Context, pod *core.Pod, subresource, container string, command []string, detach []byte) error {
	if _, ok := frame.Terminal(j.In); j.tty && !ok {
		j.tty = false
		if !j.quiet {
			fmt.Fprintln(j.Err, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
	}
	loaded, err := j.Kubeconfig()
	if err != nil {
		return err
	}
	address, err := j.joinAddress(pod, subresource, container, command)
	if err != nil {
		return err
	}
	streams := remote.Streams{Out: activityWriter{j.Out, &j.heard}, Err: activityWriter{j.Err, &j.heard}, TTY: j.tty, Detach: detach}
	if j.stdin {
		streams.In = j.In
	}
	err = remote.Join(ctx, loaded.Client, address, streams)
	return j.connectionError(err, subresource, pod)
}

func (j *attachOptions) joinAddress(pod *core.Pod, subresource, container string, command []string) (*url.URL, error) {
	client, err := j.Server()
	if err != nil {
		return nil, err
	}
	address := client.URL(core.Pods.Path(pod.Namespace, pod.Name) + "/" + subresource)
	query := url.Values{"container": {container}, "stdout": {"true"}}
	if command != nil {
		query["command"] = command
	}
	if j.stdin {
		query.Set("stdin", "true")
	}
	if j.tty {
		query.Set("tty", "true")
	} else {
		query.Set("stderr", "true")
	}
	address.RawQuery = query.Encode()
	return address, nil
}

// connectionError returns how a connection ended: the container's exit code
// becomes kctl's.
func (j *attachOptions) connectionError(err error, subresource string, pod *core.Pod) error {
	if exit, ok := errors.AsType[*remote.ExitError](err); ok {
		if !j.quiet {
			fmt.Fprintln(j.Err, exit.Error())
		}
		return frame.ExitCode(exit.Code)
	}
	if httpstream.IsUpgradeFailure(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return fmt.Errorf("the server does not %s to pod %s: %w", subresource, pod.Name, err)
	}
	return err
}
