package pods

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// logsOptions has the flags of one `kctl logs`.
type logsOptions struct {
	*frame.CLI
	labels        string
	container     string
	allContainers bool
	allPods       bool
	follow        bool
	previous      bool
	timestamps    bool
	prefix        bool
	ignoreErrors  bool
	unverified    bool // the kubelet may be any
	tail          int64
	limitBytes    int64
	since         time.Duration
	sinceTime     string
	maxFollow     int
	wait          podWait

	out sync.Mutex // a line at a time, if several logs are followed
}

// noTail reads a log from its beginning.
const noTail = -1

// selectorTail is how many lines of each log are shown when a selector chose the pods.
const selectorTail = 10

func newLogs(c *frame.CLI) *cobra.Command {
	r := &logsOptions{CLI: c}
	cmd := &cobra.Command{
		Use:     "logs (POD | TYPE/NAME | -l SELECTOR) [-c CONTAINER]",
		Short:   "Print the logs for a container in a pod",
		Example: "  kctl logs web\n  kctl logs -f web -c app\n  kctl logs -l run=web --prefix --tail=20",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&r.labels, "selector", "l", "", "Selector (label query) to filter on")
	fs.StringVarP(&r.container, "container", "c", "", "Print the logs of this container")
	fs.BoolVar(&r.allContainers, "all-containers", false, "Get all containers' logs in the pod(s).")
	fs.BoolVar(&r.allPods, "all-pods", false, "Get logs from all pod(s). Sets prefix to true.")
	fs.BoolVarP(&r.follow, "follow", "f", false, "Specify if the logs should be streamed.")
	fs.BoolVarP(&r.previous, "previous", "p", false,
		"If true, print the logs for the previous instance of the container in a pod if it exists.")
	fs.BoolVar(&r.timestamps, "timestamps", false, "Include timestamps on each line in the log output")
	fs.BoolVar(&r.prefix, "prefix", false, "Prefix each log line with the log source (pod name and container name)")
	fs.BoolVar(&r.ignoreErrors, "ignore-errors", false, "If watching / following pod logs, allow for any errors that occur to be non-fatal")
	fs.Int64Var(&r.tail, "tail", noTail,
		"Lines of recent log file to display. Defaults to -1 with no selector, showing all log lines otherwise 10, if a selector is provided.")
	fs.Int64Var(&r.limitBytes, "limit-bytes", 0, "Maximum bytes of logs to return. Defaults to no limit.")
	fs.DurationVar(&r.since, "since", 0, "Only return logs newer than a relative duration like 5s, 2m, or 3h.")
	fs.StringVar(&r.sinceTime, "since-time", "", "Only return logs after a specific date (RFC3339).")
	fs.IntVar(&r.maxFollow, "max-log-requests", 5, "Specify maximum number of concurrent logs to follow when using by a selector.")
	fs.BoolVar(&r.unverified, "insecure-skip-tls-verify-backend", false,
		"Skip verifying the identity of the kubelet that logs are requested from.")
	r.wait.add(fs, 20*time.Second)
	return cmd
}

func (r *logsOptions) run(cmd *cobra.Command, args []string) error {
	if err := r.check(cmd, args); err != nil {
		return err
	}
	pods, err := r.pods(cmd.Context(), args)
	if err != nil {
		return err
	}
	var sources []logSource
	for i := range pods {
		chosen, err := r.containers(&pods[i])
		if err != nil {
			return err
		}
		sources = append(sources, chosen...)
	}
	if !r.follow || len(sources) <= 1 {
		for _, s := range sources {
			if err := r.copyLog(cmd.Context(), s); err != nil && !r.isTolerated(err) {
				return err
			}
		}
		return nil
	}
	if len(sources) > r.maxFollow {
		return fmt.Errorf("you are attempting to follow %d log streams, but maximum allowed concurrency is %d, use "+
			"--max-log-requests to increase the limit", len(sources), r.maxFollow)
	}
	group, ctx := errgroup.WithContext(cmd.Context())
	for _, s := range sources {
		group.Go(func() error {
			if err := r.copyLog(ctx, s); err != nil && !r.isTolerated(err) {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}

const logsUsage = "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n" +
	"POD or TYPE/NAME is a required argument for the logs command"

func (r *logsOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && r.labels == "":
		return frame.UsageError(cmd, logsUsage)
	case len(args) > 0 && r.labels != "":
		return frame.UsageError(cmd, "only a selector (-l) or a POD name is allowed")
	case len(args) == 2 && r.container == "":
		r.container = args[1]
	case len(args) == 2:
		return errors.New("only one of -c or an inline [CONTAINER] arg is allowed")
	case len(args) > 2:
		return frame.UsageError(cmd, logsUsage)
	}
	if r.container != "" && r.allContainers {
		return fmt.Errorf("--all-containers=true should not be specified with container name %s", r.container)
	}
	if r.since != 0 && r.sinceTime != "" {
		return errors.New("at most one of `sinceTime` or `sinceSeconds` may be specified")
	}
	if err := r.wait.check(); err != nil {
		return err
	}
	if r.since < 0 {
		return errors.New("--since must be greater than 0")
	}
	if r.sinceTime != "" {
		if _, err := time.Parse(time.RFC3339, r.sinceTime); err != nil {
			return fmt.Errorf("--since-time: %w", err)
		}
	}
	if r.limitBytes < 0 {
		return errors.New("--limit-bytes must be greater than 0")
	}
	r.prefix = r.prefix || r.allPods
	if r.tail < noTail {
		return errors.New("--tail must be greater than or equal to -1")
	}
	if r.labels != "" && !cmd.Flags().Changed("tail") {
		r.tail = selectorTail
	}
	return nil
}

func (r *logsOptions) pods(ctx context.Context, args []string) ([]core.Pod, error) {
	namespace, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	client, err := r.Server()
	if err != nil {
		return nil, err
	}
	if r.labels != "" {
		var found struct{ Items []core.Pod }
		if err := client.Resource(core.Pods, namespace).List(ctx, &found, rest.LabelSelector(r.labels)); err != nil {
			return nil, err
		}
		if len(found.Items) == 0 {
			fmt.Fprintf(r.Err, "No resources found in %s namespace.\n", namespace)
		}
		return found.Items, nil
	}
	name, err := lookup.PodName(args[0])
	if err != nil {
		return r.podsBehind(ctx, args[0])
	}
	pod, err := lookup.GetPod(ctx, client, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("error from server (NotFound): %w in namespace %q", err, namespace)
	}
	return []core.Pod{*pod}, err
}

// podsBehind are the pods of a workload: the first, or with --all-pods all.
func (r *logsOptions) podsBehind(ctx context.Context, arg string) ([]core.Pod, error) {
	if !r.allPods {
		pod, _, err := podOf(ctx, r.CLI, arg, r.wait)
		if err != nil {
			return nil, err
		}
		return []core.Pod{*pod}, nil
	}
	object, err := lookup.One(ctx, r.CLI, arg)
	if err != nil {
		return nil, err
	}
	r.prefix = true
	return podsOf(ctx, r.CLI, object)
}

// logSource is one container's log.
type logSource struct{ namespace, pod, container string }

func (r *logsOptions) containers(pod *core.Pod) ([]logSource, error) {
	from := func(container string) logSource { return logSource{pod.Namespace, pod.Name, container} }
	if r.allContainers {
		var all []logSource
		for _, name := range ContainerNames(pod) {
			all = append(all, from(name))
		}
		return all, nil
	}
	container, err := chooseContainer(r.Err, pod, r.container)
	if err != nil {
		return nil, err
	}
	return []logSource{from(container)}, nil
}

// ContainerNames are those of all containers of a pod, in the order they run.
func ContainerNames(pod *core.Pod) []string {
	var names []string
	for c := range core.Containers(&pod.Spec) {
		names = append(names, c.Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// defaultContainerAnnotation names the container for commands that name none.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// chooseContainer checks the named container, or chooses one, and says so
// where there was a choice.
func chooseContainer(says io.Writer, pod *core.Pod, named string) (string, error) {
	names := ContainerNames(pod)
	if named = cmp.Or(named, pod.Annotations[defaultContainerAnnotation]); named != "" {
		if slices.Contains(names, named) {
			return named, nil
		}
		return "", fmt.Errorf("container %s is not valid for pod %s out of: %s", named, pod.Name, strings.Join(labelledContainers(pod), ", "))
	}
	if len(pod.Spec.Containers) == 0 {
		return "", fmt.Errorf("pod %s has no containers", pod.Name)
	}
	first := pod.Spec.Containers[0].Name
	if len(names) > 1 {
		fmt.Fprintf(says, "Defaulted container %q out of: %s\n", first, printer.Visible(strings.Join(labelledContainers(pod), ", ")))
	}
	return first, nil
}

func labelledContainers(pod *core.Pod) []string {
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name+" (ephem)")
	}
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name+" (init)")
	}
	return names
}

func (r *logsOptions) isTolerated(err error) bool {
	if !r.ignoreErrors {
		return false
	}
	fmt.Fprintf(printer.VisibleTo(r.Err), "error: %v\n", err)
	return true
}

func (r *logsOptions) options(s logSource) []rest.Option {
	boolean := func(key string, set bool) rest.Option {
		if set {
			return rest.Query(key, "true")
		}
		return rest.Query(key, "")
	}
	number := func(key string, n int64, given bool) rest.Option {
		if given {
			return rest.Query(key, fmt.Sprint(n))
		}
		return rest.Query(key, "")
	}
	seconds := int64((r.since + time.Second - 1) / time.Second)
	return []rest.Option{
		rest.Sub("log"), rest.Query("container", s.container), rest.Query("sinceTime", r.sinceTime), rest.Accept("*/*"),
		boolean("follow", r.follow), boolean("previous", r.previous), boolean("timestamps", r.timestamps),
		boolean("insecureSkipTLSVerifyBackend", r.unverified),
		number("tailLines", r.tail, r.tail != noTail), number("limitBytes", r.limitBytes, r.limitBytes > 0),
		number("sinceSeconds", seconds, r.since > 0),
	}
}

// copyLog writes one log as it arrives.
func (r *logsOptions) copyLog(ctx context.Context, s logSource) error {
	client, err := r.Server()
	if err != nil {
		return err
	}
	stream, err := client.Resource(core.Pods, s.namespace).Stream(ctx, s.pod, r.options(s)...)
	if err != nil {
		return err
	}
	defer stream.Close()
	prefix := ""
	if r.prefix {
		prefix = printer.Visible(fmt.Sprintf("[pod/%s/%s] ", s.pod, s.container))
	}
	if prefix == "" && !r.follow {
		_, err = io.Copy(r.Out, stream)
		return err
	}
	return r.copyLines(bufio.NewReaderSize(stream, longestLine), prefix)
}

// longestLine is how much of a line is buffered before it is written: a container's
// lines need not end.
const longestLine = 64 << 10

// CopyLog writes a container's whole log.
func CopyLog(ctx context.Context, c *frame.CLI, pod *core.Pod, container string) error {
	return showLog(ctx, c, c.Out, pod, container)
}

// copyLines writes whole lines, so that those of several containers don't mix, but for
// very long ones, which are written in parts.
func (r *logsOptions) copyLines(from *bufio.Reader, prefix string) error {
	begins := prefix
	for {
		line, err := from.ReadSlice('\n')
		if len(line) > 0 {
			r.out.Lock()
			_, writeErr := fmt.Fprintf(r.Out, "%s%s", begins, line)
			r.out.Unlock()
			if writeErr != nil {
				return writeErr
			}
		}
		switch begins = prefix; {
		case errors.Is(err, bufio.ErrBufferFull):
			begins = ""
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
