package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

func newSet(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("set", "Set specific features on objects")
	cmd.AddCommand(newSetImage(c), newSetEnv(c), newSetResources(c), newSetServiceAccount(c), newSetSelector(c), newSetSubject(c))
	return cmd
}

// setOptions is what the verbs below `kctl set` share: they change the pod spec of
// pods and workloads.
type setOptions struct {
	send.Sender
	lookup.Selection
	local      bool
	containers string // a pattern for container names
	unchanged  bool   // objects that are so already are printed, too
}

func (s *setOptions) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	s.AddFiles(fs, "the resource to update")
	s.AddLabels(fs)
	s.Sender.Add(cmd, "kubectl-set")
	fs.BoolVar(&s.All, "all", false, "If true, select all resources in the namespace of the specified resource types")
	s.AddLocal(cmd, &s.local, "If true, the command will run locally, without contacting the API server.")
}

func (s *setOptions) addContainers(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.containers, "containers", "c", "*",
		"The names of containers in the selected pod templates to change, all containers are selected by default - may use wildcards")
}

// podSpecPath is where objects of a kind keep the spec of their pods.
func podSpecPath(kind string) []string {
	switch kind {
	case "Pod":
		return []string{"spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return []string{"spec", "template", "spec"}
}

// errNoTemplate is about objects that have no pods.
var errNoTemplate = errors.New("the object is not a pod or does not have a pod template")

// podSpec reads the spec of an object's pods.
func podSpec(object *unstructured.Unstructured) (*corev1.PodSpec, error) {
	content, ok, err := unstructured.NestedMap(object.Object, podSpecPath(object.GetKind())...)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: %s", errNoTemplate, object.GetKind())
	}
	spec := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, spec); err != nil {
		return nil, fmt.Errorf("decode the pod template of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return spec, nil
}

// updatePodSpecs lets edit change the pod spec of every object that the arguments mean,
// and sends the differences.
func (s *setOptions) updatePodSpecs(cmd *cobra.Command, args []string, operation string,
	edit func(*unstructured.Unstructured, *corev1.PodSpec) error) error {
	one := func(t lookup.Target, object *unstructured.Unstructured) error {
		patch, err := podSpecPatch(object, edit)
		if err != nil || patch == nil && !s.unchanged && s.Cause() == "" {
			return err
		}
		if patch == nil {
			patch = []byte("{}")
		}
		if patch, err = s.WithCause(patch); err != nil {
			return err
		}
		s.Record(object)
		if s.local || s.DryRun == frame.DryRunClient {
			return s.Print(&s.Printing, s.DryRun.Mark(operation), object)
		}
		changed, err := s.Patch(cmd.Context(), t, types.StrategicMergePatchType, patch)
		if err != nil {
			return fmt.Errorf("failed to patch %s update to pod template: %w", strings.Fields(operation)[0], err)
		}
		return s.Print(&s.Printing, s.DryRun.Mark(operation), changed)
	}
	return s.onEach(cmd.Context(), args, one)
}

// onEach calls one for every object that the arguments mean, or, with --local,
// the files.
func (s *setOptions) onEach(ctx context.Context, args []string, one func(lookup.Target, *unstructured.Unstructured) error) error {
	if err := s.CheckAll(); err != nil {
		return err
	}
	if s.local {
		return lookup.Locally(ctx, s.Sender.CLI, &s.Selection, args, one)
	}
	targets, err := lookup.Named(ctx, s.Sender.CLI, &s.Selection, args, "")
	if err != nil {
		return err
	}
	type found struct {
		target lookup.Target
		object *unstructured.Unstructured
	}
	var all []found
	err = lookup.Each(ctx, s.Sender.CLI, targets, &s.Selection, func(t lookup.Target, object *unstructured.Unstructured) error {
		all = append(all, found{t, object})
		return nil
	})
	if err != nil {
		return err // all or none, as kubectl does
	}
	var failed []error
	for _, each := range all {
		failed = append(failed, one(each.target, each.object))
	}
	return errors.Join(failed...)
}

// podSpecPatch edits the pod spec in the object, and returns the strategic merge
// patch that does the same on the server; nil where nothing changed.
func podSpecPatch(object *unstructured.Unstructured, edit func(*unstructured.Unstructured, *corev1.PodSpec) error) ([]byte, error) {
	spec, err := podSpec(object)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod template: %w", err)
	}
	if err := edit(object, spec); err != nil {
		return nil, err
	}
	after, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod template: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.PodSpec{})
	if err != nil {
		return nil, fmt.Errorf("comparing the pod template with what it was: %w", err)
	}
	if string(patch) == "{}" {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod template: %w", err)
	}
	where := podSpecPath(object.GetKind())
	if err := unstructured.SetNestedMap(object.Object, content, where...); err != nil {
		return nil, fmt.Errorf("changing the pod template: %w", err)
	}
	for _, field := range slices.Backward(where) {
		patch = fmt.Appendf(nil, `{%q:%s}`, field, patch)
	}
	return patch, nil
}

// forEachMatching calls do with every container whose name matches the pattern
// of -c.
func (s *setOptions) forEachMatching(spec *corev1.PodSpec, do func(*corev1.Container)) (found bool, err error) {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			fits, err := path.Match(s.containers, list[i].Name)
			if err != nil {
				return found, fmt.Errorf("--containers %q: %w", s.containers, err)
			}
			if fits {
				found = true
				do(&list[i])
			}
		}
	}
	return found, nil
}

func newSetImage(c *frame.CLI) *cobra.Command {
	s := &setOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:     "image (-f FILE | TYPE NAME | TYPE/NAME) CONTAINER_NAME_1=IMAGE_1 ... CONTAINER_NAME_N=IMAGE_N",
		Short:   "Update the image of a pod template",
		Example: "  kctl set image deployment/web web=nginx:1.27\n  kctl set image pod/web '*=nginx:1.27'",
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, changes, err := splitChanges(args)
			if err != nil {
				return err
			}
			images, err := parseImages(changes)
			if err != nil {
				return err
			}
			return s.updatePodSpecs(cmd, objects, "image updated", func(_ *unstructured.Unstructured, spec *corev1.PodSpec) error {
				return setImages(spec, images)
			})
		},
	}
	s.add(cmd)
	s.AddRecord(cmd)
	return cmd
}

// pair is a KEY=VALUE of the command line.
type pair struct{ key, value string }

// splitChanges splits KEY=VALUE and KEY- arguments, and "-", from the objects before them.
func splitChanges(args []string) (objects, changes []string, err error) {
	first := slices.IndexFunc(args, isChange)
	if first < 0 {
		return args, nil, nil
	}
	for _, change := range args[first:] {
		if !isChange(change) {
			return nil, nil, fmt.Errorf("all resources must be specified before changes: %s", change)
		}
	}
	return args[:first], args[first:], nil
}

func isChange(arg string) bool {
	key, _, isSet := strings.Cut(arg, "=")
	return isSet && key != "" || strings.HasSuffix(arg, "-")
}

// parseImages reads CONTAINER=IMAGE arguments.
func parseImages(args []string) (images []pair, err error) {
	for _, arg := range args {
		name, image, isSet := strings.Cut(arg, "=")
		if !isSet {
			return nil, fmt.Errorf("invalid image format: %s", arg)
		}
		if err := generate.CheckImage(image); err != nil {
			return nil, err
		}
		images = append(images, pair{name, image})
	}
	if len(images) == 0 {
		return nil, errors.New("at least one image update is required")
	}
	if len(images) > 1 && slices.ContainsFunc(images, func(p pair) bool { return p.key == "*" }) {
		return nil, errors.New("all containers are already specified by *, but saw more than one container_name=container_image pairs")
	}
	return images, nil
}

func setImages(spec *corev1.PodSpec, images []pair) error {
	for _, p := range images {
		found := false
		for c := range core.Containers(spec) {
			if p.key == "*" || c.Name == p.key {
				c.Image, found = p.value, true
			}
		}
		if !found {
			return fmt.Errorf("unable to find container named %q", p.key)
		}
	}
	return nil
}

func newSetServiceAccount(c *frame.CLI) *cobra.Command {
	s := &setOptions{Sender: send.Sender{CLI: c}, unchanged: true}
	cmd := &cobra.Command{
		Use: "serviceaccount (-f FILE | TYPE NAME | TYPE/NAME) SERVICE_ACCOUNT", Aliases: []string{"sa"},
		Short:   "Update the service account of a resource",
		Example: "  kctl set serviceaccount deployment web robot",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("serviceaccount is required")
			}
			last := len(args) - 1
			return s.updatePodSpecs(cmd, args[:last], "serviceaccount updated", func(_ *unstructured.Unstructured, spec *corev1.PodSpec) error {
				spec.ServiceAccountName = args[last]
				return nil
			})
		},
	}
	s.add(cmd)
	s.AddRecord(cmd)
	return cmd
}

func newSetResources(c *frame.CLI) *cobra.Command {
	s := &setOptions{Sender: send.Sender{CLI: c}}
	var requests, limits string
	cmd := &cobra.Command{
		Use:     "resources (-f FILE | TYPE NAME | TYPE/NAME) [--limits=LIMITS] [--requests=REQUESTS]",
		Short:   "Update resource requests/limits on objects with pod templates",
		Example: "  kctl set resources deployment web -c=web --limits=cpu=200m,memory=512Mi",
		RunE: func(cmd *cobra.Command, args []string) error {
			if requests == "" && limits == "" {
				return errors.New("you must specify an update to requests or limits (in the form of --requests/--limits)")
			}
			want, err := generate.Resources(requests, limits)
			if err != nil {
				return err
			}
			set := func(container *corev1.Container) { setResources(&container.Resources, want) }
			return s.updatePodSpecs(cmd, args, "resource requirements updated", func(_ *unstructured.Unstructured, spec *corev1.PodSpec) error {
				found, err := s.forEachMatching(spec, set)
				if err == nil && !found {
					err = fmt.Errorf("unable to find container named %s", s.containers)
				}
				return err
			})
		},
	}
	s.add(cmd)
	s.AddRecord(cmd)
	s.addContainers(cmd)
	cmd.Flags().StringVar(&limits, "limits", "", "The resource requirement limits for this container. For example, 'cpu=100m,memory=256Mi'.")
	cmd.Flags().StringVar(&requests, "requests", "",
		"The resource requirement requests for this container. For example, 'cpu=100m,memory=256Mi'.")
	return cmd
}

// setResources sets the named resources.
func setResources(have *corev1.ResourceRequirements, want corev1.ResourceRequirements) {
	merge := func(into *corev1.ResourceList, from corev1.ResourceList) {
		for name, amount := range from {
			if *into == nil {
				*into = corev1.ResourceList{}
			}
			(*into)[name] = amount
		}
	}
	merge(&have.Limits, want.Limits)
	merge(&have.Requests, want.Requests)
}
