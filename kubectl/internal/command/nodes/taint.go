package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// taintOptions has the flags of one `kctl taint`.
type taintOptions struct {
	send.Sender
	lookup.Selection
	overwrite bool
	set       []corev1.Taint
	remove    []corev1.Taint // without an effect: whatever it is
}

func newTaint(c *frame.CLI) *cobra.Command {
	t := &taintOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:   "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short: "Update the taints on one or more nodes",
		Example: "  kctl taint node node-1 dedicated=batch:NoSchedule\n" +
			"  kctl taint node node-1 dedicated:NoSchedule-\n" +
			"  kctl taint node -l tier=gpu dedicated=gpu:NoExecute",
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args) },
	}
	t.Add(cmd, "kubectl-taint")
	t.AddValidation(cmd)
	t.AddLabels(cmd.Flags())
	cmd.Flags().BoolVar(&t.overwrite, "overwrite", false,
		"If true, allow taints to be overwritten, otherwise reject taint updates that overwrite existing taints.")
	t.AllSelects = true
	cmd.Flags().BoolVar(&t.All, "all", false, "Select all nodes in the cluster")
	return cmd
}

func (t *taintOptions) run(cmd *cobra.Command, args []string) error {
	objects, err := t.parseTaints(cmd, args)
	if err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	targets, err := lookup.Targets(cmd.Context(), t.Sender.CLI, &t.Selection, objects, "")
	if err != nil {
		return err
	}
	for _, each := range targets {
		if each.GVR() != core.Nodes.GVR() {
			return fmt.Errorf("invalid resource type %s, only node types are supported", objects[0])
		}
	}
	return lookup.Each(cmd.Context(), t.Sender.CLI, targets, &t.Selection, func(node lookup.Target, object *unstructured.Unstructured) error {
		for attempt := 0; ; attempt++ {
			err := t.taint(cmd, node, object)
			if !apierrors.IsConflict(err) || attempt == send.MaxConflicts {
				return err
			}
			// Somebody else, such as the cluster itself, changed the node meanwhile.
			latest, err := lookup.Fetch(cmd.Context(), t.Sender.CLI, node, &lookup.Selection{})
			if err != nil {
				return err
			}
			object = &latest[0]
		}
	})
}

// parseTaints splits KEY=VALUE:EFFECT, KEY:EFFECT- and KEY- from the nodes before them.
func (t *taintOptions) parseTaints(cmd *cobra.Command, args []string) ([]string, error) {
	isTaint := func(arg string) bool { return strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-") }
	first := slices.IndexFunc(args, isTaint)
	if first < 0 {
		first = len(args)
	}
	objects, taints := args[:first], args[first:]
	if i := slices.IndexFunc(taints, func(arg string) bool { return !isTaint(arg) }); i >= 0 {
		return nil, fmt.Errorf("all resources must be specified before taint changes: %s", taints[i])
	}
	switch {
	case len(objects) == 0:
		return nil, errors.New("one or more resources must be specified as <resource> <name>")
	case len(taints) == 0:
		return nil, errors.New("at least one taint update is required")
	}
	for _, each := range taints {
		if err := t.parse(each); err != nil {
			return nil, frame.UsageError(cmd, "%s", err)
		}
	}
	if len(objects) == 1 && !strings.Contains(objects[0], "/") && !t.All && t.Labels == "" {
		return nil, errors.New("at least one resource name must be specified since 'all' parameter is not set")
	}
	return objects, nil
}

// parse takes up one taint to set or, with a dash behind it, to remove.
func (t *taintOptions) parse(arg string) error {
	text, isRemove := strings.CutSuffix(arg, "-")
	taint, err := parseTaint(text)
	switch {
	case err != nil:
		return err
	case isRemove:
		t.remove = append(t.remove, taint)
	case taint.Effect == "":
		return fmt.Errorf("invalid taint spec: %v", text)
	default:
		t.set = append(t.set, taint)
	}
	return nil
}

// check refuses what contradicts itself.
func (t *taintOptions) check() error {
	for i, taint := range t.set {
		if slices.ContainsFunc(t.set[:i], func(other corev1.Taint) bool { return sameTaint(taint, other) }) {
			return fmt.Errorf("duplicated taints with the same key and effect: %s", taintName(taint))
		}
	}
	var both []string
	for _, unwanted := range t.remove {
		if slices.ContainsFunc(t.set, func(wanted corev1.Taint) bool { return removes(unwanted, wanted) }) {
			both = append(both, unwanted.Key+"="+string(unwanted.Effect)) // kubectl's form, here alone
		}
	}
	if len(both) > 0 {
		return fmt.Errorf("can not both modify and remove the following taint(s) in the same command: %s", strings.Join(both, ", "))
	}
	if t.All && t.Labels != "" {
		return errors.New("setting 'all' parameter with a non empty selector is prohibited")
	}
	return nil
}

// parseTaint reads KEY, KEY:EFFECT or KEY=VALUE:EFFECT. What has no effect is a key as a whole.
func parseTaint(text string) (corev1.Taint, error) {
	taint := corev1.Taint{Key: text}
	if pair, effect, ok := strings.Cut(text, ":"); ok {
		if strings.Contains(effect, ":") {
			return taint, fmt.Errorf("invalid taint spec: %v", text)
		}
		taint.Effect = corev1.TaintEffect(effect)
		taint.Key, taint.Value, _ = strings.Cut(pair, "=")
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			return taint, fmt.Errorf("invalid taint effect: %v, unsupported taint effect", effect)
		}
	}
	if strings.Contains(taint.Value, "=") {
		return taint, fmt.Errorf("invalid taint spec: %v", text)
	}
	if problems := validation.IsValidLabelValue(taint.Value); len(problems) > 0 {
		return taint, fmt.Errorf("invalid taint spec: %v, %s", text, strings.Join(problems, "; "))
	}
	if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
		return taint, fmt.Errorf("invalid taint spec: %v, %s", text, strings.Join(problems, "; "))
	}
	return taint, nil
}

func (t *taintOptions) taint(cmd *cobra.Command, node lookup.Target, object *unstructured.Unstructured) error {
	decoded := &core.Node{}
	if err := lookup.Typed(object, decoded); err != nil {
		return err
	}
	after, operation, err := t.computeTaints(node.ObjectName, decoded.Spec.Taints)
	if err != nil {
		return err
	}
	if t.DryRun == frame.DryRunClient {
		decoded.Spec.Taints = after
		decoded.APIVersion, decoded.Kind = object.GetAPIVersion(), object.GetKind()
		return t.Print(&t.Printing, operation, decoded) // not marked, as in kubectl
	}
	// The whole list is sent, guarded by the revision that it was made from: a
	// merge by key would confuse two taints with the same key and different
	// effects.
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": object.GetResourceVersion()}, "spec": map[string]any{"taints": after},
	})
	if err != nil {
		return fmt.Errorf("encoding the taints: %w", err)
	}
	fieldValidation, err := t.FieldValidation()
	if err != nil {
		return err
	}
	changed, err := t.Patch(cmd.Context(), node, types.MergePatchType, body, rest.Query("fieldValidation", fieldValidation))
	if err != nil {
		return err
	}
	return t.Print(&t.Printing, t.DryRun.Mark(operation), changed)
}

func sameTaint(a, b corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

// removes tells whether a taint is one that is to be removed: by its key, and by its
// effect if that is given.
func removes(unwanted, taint corev1.Taint) bool {
	return unwanted.Key == taint.Key && (unwanted.Effect == "" || unwanted.Effect == taint.Effect)
}

// computeTaints returns the node's new taints, and the name of the operation.
func (t *taintOptions) computeTaints(node string, have []corev1.Taint) ([]corev1.Taint, string, error) {
	after := slices.Clone(have)
	var added []corev1.Taint
	var taken []string
	overwritten := false
	for _, wanted := range t.set {
		at := slices.IndexFunc(after, func(there corev1.Taint) bool { return sameTaint(there, wanted) })
		switch {
		case at < 0:
			added = append(added, wanted)
		case t.overwrite:
			after[at].Value, overwritten = wanted.Value, true
		default:
			taken = append(taken, wanted.Key)
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		return nil, "", fmt.Errorf("node %s already has %s taint(s) with same effect(s) and --overwrite is false",
			node, strings.Join(taken, ", "))
	}
	after, err := t.without(append(added, after...))
	switch {
	case err != nil:
		return nil, "", err
	case len(t.remove) > 0 && len(t.set) > 0, overwritten:
		return after, "modified", nil
	case len(t.remove) > 0:
		return after, "untainted", nil
	}
	return after, "tainted", nil
}

// without removes the taints that are to be removed. Those that are not there are errors.
func (t *taintOptions) without(after []corev1.Taint) ([]corev1.Taint, error) {
	var missing []error
	for _, unwanted := range t.remove {
		kept := slices.DeleteFunc(slices.Clone(after), func(there corev1.Taint) bool { return removes(unwanted, there) })
		if len(kept) == len(after) {
			missing = append(missing, fmt.Errorf("taint %q not found", taintName(unwanted)))
		}
		after = kept
	}
	return after, errors.Join(missing...)
}

func taintName(t corev1.Taint) string {
	if t.Effect == "" {
		return t.Key
	}
	return t.Key + ":" + string(t.Effect)
}
