package pods

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/kubectl/internal/remote"
	"kctl/proto/core"
)

// runOptions has the flags of one `kctl run`.
type runOptions struct {
	send.Sender
	image, imagePullPolicy, port, restart  string
	serviceAccount, requests, limits       string
	labels                                 string
	annotations, env                       []string
	command, privileged, expose            bool
	overrides, overrideType, generatorName string

	stdin, tty, attach, remove, leaveStdinOpen, quiet bool
	detach                                            string

	wait       bool
	timeout    time.Duration
	podTimeout time.Duration

	grace   int64        // of --rm
	cascade send.Cascade // of --rm
	force   bool
}

func newRun(c *frame.CLI) *cobra.Command {
	r := &runOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:   "run NAME --image=IMAGE [--env=KEY=VALUE]... [--port=PORT] [-- ARGS...]",
		Short: "Create and run a particular image in a pod",
		Long: "Create and run a particular image in a pod, and wait until it is ready or has completed.\n\n" +
			"Standard error shows how far the pod is and, as soon as it is known, why it gets no further.",
		Example: "  kctl run web --image=nginx --port=80\n" +
			"  kctl run web --image=nginx --dry-run=client -o yaml\n" +
			"  kctl run job --image=busybox --restart=Never -- echo hello\n" +
			"  kctl run -it shell --image=busybox --rm -- sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Start()
			return r.run(cmd, args)
		},
	}
	r.Add(cmd, "kubectl-run")
	r.AddSaveConfig(cmd.Flags())
	r.AddRecord(cmd)
	r.addPodFlags(cmd)
	r.addAttachFlags(cmd)
	return cmd
}

func (r *runOptions) addPodFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.image, "image", "", "The image for the container to run.")
	fs.StringVar(&r.imagePullPolicy, "image-pull-policy", "", "The image pull policy for the container. If left empty, the server decides.")
	fs.StringVar(&r.port, "port", "", "The port that this container exposes.")
	fs.StringArrayVar(&r.env, "env", nil, "Environment variables to set in the container.")
	fs.StringVarP(&r.labels, "labels", "l", "", "Comma separated labels to apply to the pod. Will override previous values.")
	fs.StringArrayVar(&r.annotations, "annotations", nil, "Annotations to apply to the pod.")
	fs.StringVar(&r.restart, "restart", "Always", "The restart policy for this Pod. Legal values [Always, OnFailure, Never].")
	fs.BoolVar(&r.command, "command", false,
		"If true and extra arguments are present, use them as the 'command' field in the container, rather than the 'args' "+
			"field which is the default.")
	fs.StringVar(&r.serviceAccount, "serviceaccount", "", "Service account to set in the pod spec.")
	fs.StringVar(&r.requests, "requests", "", "The resource requirement requests for this container. For example, 'cpu=100m,memory=256Mi'.")
	fs.StringVar(&r.limits, "limits", "", "The resource requirement limits for this container. For example, 'cpu=200m,memory=512Mi'.")
	fs.BoolVar(&r.privileged, "privileged", false, "If true, run the container in privileged mode.")
	fs.BoolVar(&r.expose, "expose", false, "If true, create a ClusterIP service associated with the pod. Requires --port.")
	fs.StringVar(&r.overrides, "overrides", "",
		"An inline JSON override for the generated object. If this is non-empty, it is used to override the generated object.")
	fs.StringVar(&r.overrideType, "override-type", string(generate.OverrideMerge),
		"The method used to override the generated object: json, merge, or strategic.")
	fs.StringVar(&r.generatorName, "generator", generate.RunPodV1, "The name of the generator to use.")
	_ = fs.MarkHidden("generator")
}

func (r *runOptions) addAttachFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVarP(&r.stdin, "stdin", "i", false, "Keep stdin open on the container in the pod, even if nothing is attached.")
	fs.BoolVarP(&r.tty, "tty", "t", false, "Allocate a TTY for the container in the pod.")
	fs.BoolVar(&r.attach, "attach", false,
		"If true, wait for the Pod to start running, and then attach to the Pod. Default false, unless '-i/--stdin' is set.")
	fs.BoolVar(&r.remove, "rm", false, "If true, delete the pod after it exits. Only valid when attaching to the container.")
	fs.Int64Var(&r.grace, "grace-period", -1,
		"Period of time in seconds that --rm gives the pod to terminate gracefully. Ignored if negative.")
	fs.BoolVar(&r.force, "force", false, "If true, --rm removes the pod at once.")
	r.cascade.Add(fs, `What becomes of the dependents of the pod that --rm deletes. `+send.CascadeUsage)
	addIgnored(fs)
	fs.BoolVar(&r.leaveStdinOpen, "leave-stdin-open", false,
		"If the pod is started in interactive mode or with stdin, leave stdin open after the first attach completes.")
	addDetachKeys(fs, &r.detach)
	fs.BoolVarP(&r.quiet, "quiet", "q", false, "If true, suppress prompt messages and the progress.")
	fs.BoolVar(&r.wait, "wait", r.Name != frame.Kubectl, "If true, wait until the pod is ready or has completed.")
	fs.DurationVar(&r.timeout, "timeout", 5*time.Minute, "How long to wait for the pod; zero waits for ever.")
	fs.DurationVar(&r.podTimeout, "pod-running-timeout", time.Minute,
		"The length of time to wait until the pod is running, when attaching to it.")
}

// addIgnored adds the flags about files that kubectl's run has with those of deletion, and
// ignores.
func addIgnored(fs *pflag.FlagSet) {
	fs.StringSliceP("filename", "f", nil, "It has no effect, and none in kubectl: run makes one pod.")
	fs.StringP("kustomize", "k", "", "It has no effect, and none in kubectl: run makes one pod.")
	fs.BoolP("recursive", "R", false, "It has no effect, and none in kubectl: run makes one pod.")
	_ = fs.MarkDeprecated("filename", "it is ignored and will be removed in a future release of kubectl")
}

// settle completes the options by what the others imply.
func (r *runOptions) settle(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("attach") && r.stdin {
		r.attach = true
	}
	return r.cascade.Settle(r.Err)
}

// check refuses options that make no sense together. What is wrong with the pod by itself,
// generate says.
func (r *runOptions) check() error {
	if r.tty && !r.stdin {
		return errors.New("-i/--stdin is required for containers with -t/--tty=true")
	}
	if r.expose && r.port == "" {
		return errors.New("--port must be set when exposing a service")
	}
	if _, err := remote.ParseKeys(r.detach); err != nil {
		return err
	}
	if r.attach && r.DryRun != frame.DryRunNone {
		return errors.New("--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)")
	}
	if r.force && r.grace > 0 {
		return errors.New("--force and --grace-period greater than 0 cannot be specified together")
	}
	if r.remove && !r.attach {
		return errors.New("--rm should only be used for attached containers")
	}
	return nil
}

func (r *runOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return frame.UsageError(cmd, "NAME is required for run")
	}
	if err := r.settle(cmd); err != nil {
		return err
	}
	pod, err := r.pod(args[0], args[1:])
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	r.Generated()
	object, created, err := r.create(cmd.Context(), pod)
	if err != nil {
		return err
	}
	objects := []core.Object{object}
	var unexposed error
	if r.expose {
		service, err := r.exposePod(cmd.Context(), pod)
		if unexposed = err; err == nil {
			objects = append(objects, service)
		}
	}
	if r.attach {
		if unexposed != nil {
			r.Warn("pod %q has no service: %s", pod.Name, r.Text(unexposed))
		}
		return r.attachAndExit(cmd.Context(), created, objects)
	}
	for _, object := range objects {
		if err := r.Print(&r.Printing, r.DryRun.Mark("created"), object); err != nil {
			return err
		}
	}
	if unexposed != nil || !r.wait || r.DryRun != frame.DryRunNone {
		return unexposed
	}
	return r.waitReady(cmd.Context(), created)
}

// create creates the pod, and returns what became of it, as the server says it and as a pod.
// It is not SendGenerated because a client-side dry run does not show what --save-config
// adds, as in kubectl's run, and unlike in its create.
func (r *runOptions) create(ctx context.Context, pod *core.Pod) (core.Object, *core.Pod, error) {
	namespace, err := r.setNamespace(pod)
	if err != nil {
		return nil, nil, err
	}
	r.Record(pod)
	if r.DryRun == frame.DryRunClient {
		return pod, pod, nil
	}
	var body core.Object = pod
	if r.SaveConfig {
		if body, err = send.Remembering(pod); err != nil {
			return nil, nil, err
		}
	}
	object, err := r.Post(ctx, core.Pods, namespace, body)
	if err != nil {
		if ctx.Err() != nil && r.DryRun == frame.DryRunNone {
			fmt.Fprintf(r.Err, "Stopped before the server answered: see \"%s get pod %s\" for whether the pod was created.\n", r.Name, pod.Name)
		}
		return nil, nil, err
	}
	created := &core.Pod{}
	return object, created, lookup.Typed(object, created)
}

// pod generates the pod and lays the overrides over it.
func (r *runOptions) pod(name string, args []string) (*core.Pod, error) {
	if err := generate.CheckGenerator(r.generatorName); err != nil {
		return nil, err
	}
	var labels []string
	if r.labels != "" {
		labels = strings.Split(r.labels, ",")
	}
	pod, err := generate.Pod(generate.PodOptions{
		Name: name, Image: r.image, PullPolicy: r.imagePullPolicy, Port: r.port, Labels: labels, Annotations: r.annotations, Env: r.env,
		Args: args, Command: r.command, Restart: r.restart, Stdin: r.stdin, TTY: r.tty, LeaveStdinOpen: r.leaveStdinOpen,
		ServiceAccount: r.serviceAccount, Privileged: r.privileged, Requests: r.requests, Limits: r.limits,
	})
	if err != nil {
		return nil, err
	}
	return generate.Override(pod, r.overrides, generate.OverrideType(r.overrideType))
}

// setNamespace sets the namespace: from the overrides, or else the command's. A
// client-side dry run needs no server and so no kubeconfig.
func (r *runOptions) setNamespace(pod *core.Pod) (string, error) {
	loaded, err := r.Kubeconfig()
	if err != nil {
		if r.DryRun == frame.DryRunClient {
			return "", nil
		}
		return "", err
	}
	if pod.Namespace == "" {
		if loaded.Chosen {
			pod.Namespace = loaded.Namespace
		}
		return loaded.Namespace, nil
	}
	if loaded.Chosen && pod.Namespace != loaded.Namespace {
		return "", fmt.Errorf("the namespace of --overrides %q does not match the namespace %q of --namespace", pod.Namespace, loaded.Namespace)
	}
	return pod.Namespace, nil
}
