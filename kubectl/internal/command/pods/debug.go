package pods

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// debugOptions has the flags of one `kctl debug`.
type debugOptions struct {
	attachOptions
	image, imagePullPolicy, target string
	env, setImage                  map[string]string
	attach                         bool
	copyTo                         string
	replace, sameNode, shareProc   bool
	command                        []string // what follows --
	asArgs                         bool     // these are arguments, not a command
	keep                           keepOptions
	shareSaid                      bool
	rights                         debugProfile
	profile, customFile            string
	custom                         []byte // a part of a container, as JSON; nil: none
}

func newDebug(c *frame.CLI) *cobra.Command {
	d := &debugOptions{attachOptions: attachOptions{CLI: c}}
	var selected lookup.Selection
	cmd := &cobra.Command{
		Use:   "debug (POD | TYPE/NAME | node/NAME) [--image=IMAGE] [-it] [-- COMMAND [args...]]",
		Short: "Create debugging sessions for troubleshooting workloads and nodes",
		Long: "Create debugging sessions for troubleshooting workloads and nodes.\n\nOf a pod: a container is added to it while it runs, or, " +
			"with --copy-to, to a copy of it.\n" +
			"Of a node: a pod is made there that sees the node's processes and network, and its files under /host.",
		Example: "  kctl debug web -it --image=busybox\n" +
			"  kctl debug web -it --image=busybox --target=app\n" +
			"  kctl debug web -it --copy-to=web-debug --image=busybox\n" +
			"  kctl debug node/node-1 -it --image=busybox",
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args, &selected) },
	}
	d.add(cmd)
	selected.AddFilenames(cmd.Flags(), "identifying the resource to debug")
	d.keep.add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&d.image, "image", "", "Container image to use for debug container.")
	fs.StringVar(&d.imagePullPolicy, "image-pull-policy", "", "The image pull policy for the container. If left empty, the server decides.")
	fs.StringVar(&d.target, "target", "", "When using an ephemeral container, target processes in this container name.")
	fs.StringToStringVar(&d.env, "env", nil, "Environment variables to set in the container.")
	fs.BoolVar(&d.attach, "attach", false,
		"If true, wait for the container to start running, and then attach as if 'kctl attach ...' were called. Default false, "+
			"unless '-i/--stdin' is set.")
	fs.StringVar(&d.copyTo, "copy-to", "", "Create a copy of the target Pod with this name.")
	fs.BoolVar(&d.replace, "replace", false, "When used with '--copy-to', delete the original Pod.")
	fs.BoolVar(&d.sameNode, "same-node", false, "When used with '--copy-to', schedule the copy of target Pod on the same node.")
	fs.BoolVar(&d.shareProc, "share-processes", true, "When used with '--copy-to', enable process namespace sharing in the copy.")
	fs.BoolVar(&d.asArgs, "arguments-only", false,
		"If specified, everything after -- will be passed to the new container as Args instead of Command.")
	fs.StringToStringVar(&d.setImage, "set-image", nil,
		"When used with '--copy-to', a list of name=image pairs for changing container images.")
	fs.StringVar(&d.profile, "profile", "general", "Options are general, baseline, restricted, netadmin or sysadmin.")
	fs.StringVar(&d.customFile, "custom", "",
		"Path to a JSON or YAML file containing a partial container spec to customize built-in debug profiles.")
	return cmd
}

func (d *debugOptions) run(cmd *cobra.Command, args []string, selected *lookup.Selection) error {
	names := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		names, d.command = args[:dash], args[dash:]
	}
	if selected.FromFiles() {
		named, err := fileNamed(cmd.Context(), d.attachOptions.CLI, selected)
		if err != nil {
			return err
		}
		names = append([]string{named}, names...)
	}
	if err := d.check(cmd, names); err != nil {
		return err
	}
	if err := d.prepare(cmd); err != nil {
		return err
	}
	container, err := d.newContainer()
	if err != nil {
		return err
	}
	kind, name, ok := strings.Cut(names[0], "/")
	onNode := ok && (kind == "node" || kind == "nodes" || kind == "no")
	if onNode && d.profile == "general" {
		container.SecurityContext = nil // what it sees of the node comes from the pod's namespaces
	}
	if err := d.customize(&container); err != nil {
		return err
	}
	if onNode {
		return d.createNodePod(cmd.Context(), name, container)
	}
	pod, _, err := podOf(cmd.Context(), d.attachOptions.CLI, names[0], podWait{usualPodWait})
	if err != nil {
		return err
	}
	if d.copyTo != "" {
		return d.createCopy(cmd.Context(), pod, container)
	}
	return d.addEphemeral(cmd.Context(), pod, container)
}

// check refuses command lines that don't say what to do, or say it twice.
func (d *debugOptions) check(cmd *cobra.Command, names []string) error {
	switch {
	case d.attach && d.image == "" && d.container == "":
		return errors.New("you must specify --container or create a new container using --image in order to attach.")
	case d.copyTo != "" && d.image == "" && len(d.setImage)+len(d.command) == 0:
		return errors.New("you must specify --image, --set-image or command arguments.")
	case d.copyTo != "" && d.image == "" && d.container == "" && len(d.command) > 0:
		return errors.New("you must specify an existing container or a new image when specifying args.")
	case d.replace && d.copyTo == "":
		return errors.New("--replace may only be used with --copy-to.")
	case d.sameNode && d.copyTo == "":
		return errors.New("--same-node may only be used with --copy-to.")
	case len(d.setImage) > 0 && d.copyTo == "":
		return errors.New("--set-image may only be used with --copy-to.")
	case d.image == "" && d.copyTo == "":
		return errors.New("you must specify --image when not using --copy-to.")
	case len(names) != 1:
		return frame.UsageError(cmd, "exactly one POD or TYPE/NAME is required for debug")
	case d.copyTo != "" && d.target != "":
		return errors.New("--target is incompatible with --copy-to. Use --share-processes instead.")
	case d.tty && !d.stdin:
		return errors.New("-i/--stdin is required for containers with -t/--tty=true")
	}
	for container, image := range d.setImage {
		if err := generate.CheckImage(image); err != nil {
			return fmt.Errorf("container %q: %w", container, err)
		}
	}
	if d.image == "" {
		return nil
	}
	return generate.CheckImage(d.image)
}

// prepare reads the files that the flags name, and fills in defaults.
func (d *debugOptions) prepare(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("attach") {
		d.attach = d.stdin
	}
	if err := d.readCustom(); err != nil {
		return err
	}
	var err error
	if d.rights, err = d.chosenProfile(); err != nil {
		return err
	}
	if d.profile == "legacy" {
		d.Warn("the profile legacy goes away with Kubernetes 1.39: --profile=general is what comes after it")
	}
	d.shareSaid = cmd.Flags().Changed("share-processes")
	return nil
}

// printf prints a message for the user, unless --quiet is set.
func (d *debugOptions) printf(format string, args ...any) {
	if !d.quiet {
		fmt.Fprintf(d.Out, format, args...)
	}
}

// setCommand sets what a container runs, if the command line says it.
func (d *debugOptions) setCommand(container *corev1.Container) {
	switch {
	case len(d.command) == 0:
	case d.asArgs:
		container.Args = d.command
	default:
		container.Command, container.Args = d.command, nil
	}
}

// newContainer returns the container to debug with.
func (d *debugOptions) newContainer() (corev1.Container, error) {
	policy, err := generate.PullPolicy(d.imagePullPolicy)
	if err != nil {
		return corev1.Container{}, err
	}
	container := corev1.Container{
		Name: cmp.Or(d.container, "debugger-"+rand.String(5)), Image: d.image, ImagePullPolicy: policy, Env: d.variables(),
		Stdin: d.stdin, TTY: d.tty, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	d.setCommand(&container)
	d.rights.applyTo(&container)
	return container, nil
}

// variables are those of --env.
func (d *debugOptions) variables() []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		all = append(all, corev1.EnvVar{Name: name, Value: d.env[name]})
	}
	return all
}

// addEphemeral adds the container to the pod as it runs.
func (d *debugOptions) addEphemeral(ctx context.Context, pod *core.Pod, container corev1.Container) error {
	if d.target != "" {
		d.printf("Targeting container %q. If you don't see processes from this container it may be because the container runtime "+
			"doesn't support this feature.\n", d.target)
	}
	if d.container == "" {
		d.printf("Defaulting debug container name to %s.\n", container.Name)
	}
	d.warnUnprivileged(pod, &container)
	added := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(container), TargetContainerName: d.target}
	type named struct {
		Name string `json:"name"`
	}
	var order []named // or the new one would come first
	for i := range pod.Spec.EphemeralContainers {
		there := pod.Spec.EphemeralContainers[i].Name
		if there == added.Name { // the patch would be merged into it, perhaps to nothing
			return fmt.Errorf("pod %s already has an ephemeral container %q, which can't be changed: choose another name with -c", pod.Name, there)
		}
		order = append(order, named{there})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"ephemeralContainers": []any{added}, "$setElementOrder/ephemeralContainers": append(order, named{added.Name}),
	}})
	if err != nil {
		return fmt.Errorf("encoding the container: %w", err)
	}
	client, err := d.Server()
	if err != nil {
		return err
	}
	changed := &core.Pod{}
	err = client.Resource(core.Pods, pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, changed,
		rest.Sub("ephemeralcontainers"))
	if err != nil {
		return err
	}
	return d.attachOrShowLogs(ctx, changed, container.Name)
}

// createNodePod makes a pod on the node that can see the node's processes and files.
func (d *debugOptions) createNodePod(ctx context.Context, node string, container corev1.Container) error {
	client, err := d.Server()
	if err != nil {
		return err
	}
	if err := client.Resource(core.Nodes, "").Get(ctx, node, nil); err != nil {
		return err
	}
	if d.container == "" {
		container.Name = "debugger"
	}
	sees := d.rights.onNode
	pod := &core.Pod{Spec: core.PodSpec{
		NodeName:      node,
		RestartPolicy: corev1.RestartPolicyNever,
		HostNetwork:   sees.namespaces,
		HostPID:       sees.namespaces,
		HostIPC:       sees.namespaces,
		Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	if sees.files {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "host-root", MountPath: "/host"})
		pod.Spec.Volumes = []corev1.Volume{{Name: "host-root",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}
	pod.Spec.Containers = []corev1.Container{container}
	pod.Labels = map[string]string{"app.kubernetes.io/managed-by": "kubectl-debug"} // kubectl's: one selector finds the pods of both
	pod.Name = fmt.Sprintf("node-debugger-%s-%s", node, rand.String(5))
	d.printf("Creating debugging pod %s with container %s on node %s.\n", pod.Name, container.Name, node)
	made, err := d.create(ctx, pod)
	if err != nil {
		return err
	}
	return d.attachOrShowLogs(ctx, made, container.Name)
}

// create makes the pod to debug with.
func (d *debugOptions) create(ctx context.Context, pod *core.Pod) (*core.Pod, error) {
	namespace, err := d.Namespace()
	if err != nil {
		return nil, err
	}
	pod.APIVersion, pod.Kind, pod.Namespace = "v1", "Pod", namespace
	s := &send.Sender{CLI: d.CLI, Manager: send.FieldManager}
	object, err := s.Post(ctx, core.Pods, namespace, pod)
	if err != nil {
		return nil, err
	}
	made := &core.Pod{}
	return made, lookup.Typed(object, made)
}

// attachOrShowLogs attaches the user to the container once it runs, or shows its output
// if it has ended by then.
func (d *debugOptions) attachOrShowLogs(ctx context.Context, pod *core.Pod, container string) error {
	if !d.attach || container == "" {
		return nil
	}
	ended := false
	t := lookup.Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: pod.Namespace, ObjectName: pod.Name}
	err := lookup.Follow(ctx, d.CLI, t, func(object *unstructured.Unstructured) (bool, error) {
		latest := &core.Pod{}
		if err := lookup.Typed(object, latest); err != nil {
			return false, err
		}
		for status := range core.AllContainerStatuses(&latest.Status) {
			state := status.State
			switch {
			case status.Name != container:
			case state.Running != nil:
				return true, nil
			case state.Terminated != nil:
				ended = true
				return true, nil
			case state.Waiting != nil && (state.Waiting.Reason == "ErrImagePull" || state.Waiting.Reason == "InvalidImageName"):
				d.Warn("container %s: %s: %s", container, state.Waiting.Reason, state.Waiting.Message)
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if ended {
		return showLog(ctx, d.CLI, d.Out, pod, container)
	}
	return d.attachOrLog(ctx, pod, container)
}
