package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/rollout"
)

// labelOptions has the flags of `kctl label` and `kctl annotate`, which differ only in the field.
type labelOptions struct {
	send.Sender
	lookup.Selection
	field           string // of metadata: "labels" or "annotations"
	overwrite       bool
	list, local     bool
	resourceVersion string
}

func newLabel(c *frame.CLI) *cobra.Command { return newMarking(c, "label", "labels") }

func newAnnotate(c *frame.CLI) *cobra.Command { return newMarking(c, "annotate", "annotations") }

func newMarking(c *frame.CLI, verb, field string) *cobra.Command {
	m := &labelOptions{Sender: send.Sender{CLI: c, Printing: frame.Printing{Undivided: verb == "label"}}, field: field}
	cmd := &cobra.Command{
		Use:     verb + " [--overwrite] (TYPE NAME... | TYPE/NAME | -f FILE) KEY_1=VAL_1 ... KEY_N=VAL_N KEY-",
		Short:   "Update the " + field + " on a resource",
		Example: "  kctl " + verb + " pod web tier=front\n  kctl " + verb + " pod web tier-",
		RunE:    func(cmd *cobra.Command, args []string) error { return m.run(cmd, args) },
	}
	fs := cmd.Flags()
	m.AddFiles(fs, "identifying the resource to update the "+field)
	if verb == "annotate" {
		m.RecurseFiles(fs)
	}
	m.AddLabels(fs)
	m.AddFields(fs)
	m.AddAllNamespaces(fs)
	m.Add(cmd, "kubectl-"+verb)
	m.AddRecord(cmd)
	fs.BoolVar(&m.All, "all", false, "Select all resources, in the namespace of the specified resource types")
	fs.BoolVar(&m.overwrite, "overwrite", false, "If true, allow "+field+
		" to be overwritten, otherwise reject updates that overwrite existing ones.")
	fs.BoolVar(&m.list, "list", false, "If true, display the "+field+" for a given resource.")
	m.AddLocal(cmd, &m.local, "If true, "+verb+" will NOT contact api-server but run locally.")
	fs.StringVar(&m.resourceVersion, "resource-version", "",
		"If non-empty, the update will only succeed if this is the current resource-version for the object.")
	return cmd
}

// labelChanges are what the arguments ask for.
type labelChanges struct {
	set    map[string]string
	remove []string
}

// splitMarks splits the KEY=VALUE and KEY- arguments from the objects before them.
// If a key has several values, the last one counts.
func (m *labelOptions) splitMarks(args []string) (objects []string, out labelChanges, err error) {
	out.set = map[string]string{}
	for _, arg := range args {
		key, value, isSet := strings.Cut(arg, "=")
		removed, isRemove := strings.CutSuffix(arg, "-")
		switch {
		case isSet && key != "":
			if err := m.validate(arg, key, value); err != nil {
				return nil, out, err
			}
			out.set[key] = value
		case isRemove && removed != "":
			out.remove = append(out.remove, removed)
		case len(out.set)+len(out.remove) > 0:
			return nil, out, fmt.Errorf("all resources must be specified before %s changes: %s", m.singular(), arg)
		default:
			objects = append(objects, arg)
		}
	}
	var both []string
	for _, key := range out.remove {
		if _, given := out.set[key]; given {
			both = append(both, key)
		}
	}
	switch {
	case len(both) == 0:
		return objects, out, nil
	case m.field == "labels":
		return nil, out, errors.New("can not both modify and remove a label in the same command")
	}
	return nil, out, fmt.Errorf("can not both modify and remove the following annotation(s) in the same command: %s", strings.Join(both, ", "))
}

// singular is the singular of the field's name.
func (m *labelOptions) singular() string { return strings.TrimSuffix(m.field, "s") }

func (m *labelOptions) validate(arg, key, value string) error {
	if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		return fmt.Errorf("invalid %s key %q: %s", m.singular(), key, strings.Join(problems, "; "))
	}
	if m.field != "labels" {
		return nil
	}
	if strings.Contains(value, "=") {
		return fmt.Errorf("invalid label spec: %s", arg)
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return fmt.Errorf("invalid label value: %q: %s", arg, strings.Join(problems, ";"))
	}
	return nil
}

func (m *labelOptions) run(cmd *cobra.Command, args []string) error {
	objects, given, err := m.splitMarks(args)
	if err != nil {
		return err
	}
	if err := m.CheckAll(); err != nil {
		return err
	}
	if len(objects) == 0 && !m.FromFiles() && !m.local {
		return errors.New("one or more resources must be specified as <resource> <name> or <resource>/<name>")
	}
	if len(given.set)+len(given.remove) == 0 && !m.list {
		return fmt.Errorf("at least one %s update is required", m.singular())
	}
	if m.list && m.Chosen() {
		return errors.New("--list and --output may not be specified together")
	}
	mark := func(t lookup.Target, object *unstructured.Unstructured) error {
		return m.applyTo(cmd.Context(), t, object, given)
	}
	if m.local {
		return lookup.Locally(cmd.Context(), m.Sender.CLI, &m.Selection, objects, mark)
	}
	targets, unread := lookup.Targets(cmd.Context(), m.Sender.CLI, &m.Selection, objects, "")
	if unread != nil && len(targets) == 0 {
		return unread
	}
	if len(targets) == 1 && targets[0].ObjectName == "" && !m.All && m.Labels == "" && m.Fields == "" {
		return lookup.ErrNoName
	}
	if m.resourceVersion != "" && (len(targets) != 1 || targets[0].ObjectName == "") {
		return errors.New("--resource-version may only be used with a single resource")
	}
	return errors.Join(unread, lookup.Each(cmd.Context(), m.Sender.CLI, targets, &m.Selection, mark))
}

func (m *labelOptions) applyTo(ctx context.Context, t lookup.Target, object *unstructured.Unstructured, given labelChanges) error {
	have, _, err := unstructured.NestedStringMap(object.Object, "metadata", m.field)
	if err != nil {
		return fmt.Errorf("reading the %s: %w", m.field, err)
	}
	if err := m.checkOverwrite(have, given); err != nil {
		return err
	}
	change, operation := m.computePatch(have, given)
	if m.list {
		// Given objects are shown as if they existed.
		if err := markLocally(object, m.field, change); err != nil {
			return err
		}
		return m.printMarks(object)
	}
	if m.local || m.DryRun == frame.DryRunClient {
		if err := markLocally(object, m.field, change); err != nil {
			return err
		}
		m.Record(object)
	} else if len(change) > 0 || m.Cause() != "" {
		metadata := map[string]any{m.field: change}
		if m.resourceVersion != "" {
			metadata["resourceVersion"] = m.resourceVersion
		}
		if object, err = m.patch(ctx, t, metadata); err != nil {
			return err
		}
	}
	return m.Print(&m.Printing, m.DryRun.Mark(operation), object)
}

// markLocally makes the change in the object itself.
func markLocally(object *unstructured.Unstructured, field string, change map[string]any) error {
	for key, value := range change {
		if value == nil {
			unstructured.RemoveNestedField(object.Object, "metadata", field, key)
		} else if err := unstructured.SetNestedField(object.Object, value, "metadata", field, key); err != nil {
			return fmt.Errorf("setting the %s: %w", field, err)
		}
	}
	return nil
}

// computePatch returns the patch and the name of the operation.
func (m *labelOptions) computePatch(have map[string]string, given labelChanges) (change map[string]any, operation string) {
	change = map[string]any{}
	for key, value := range given.set {
		if old, exists := have[key]; !exists || old != value {
			change[key] = value
		}
	}
	set := len(change)
	for _, key := range given.remove {
		if _, exists := have[key]; exists {
			change[key] = nil
		} else if m.field == "labels" && !m.list && !m.local && m.DryRun != frame.DryRunClient {
			fmt.Fprintf(m.Out, "label %q not found.\n", key)
		}
	}
	switch {
	case m.field == "annotations":
		return change, "annotated"
	case len(change) == 0:
		return change, "not labeled"
	case set == 0:
		return change, "unlabeled"
	case set < len(change):
		return change, "modified"
	}
	return change, "labeled"
}

// checkOverwrite returns an error that names the values that would be
// overwritten without permission. For annotations, the change cause may always
// be.
func (m *labelOptions) checkOverwrite(have map[string]string, given labelChanges) error {
	if m.overwrite {
		return nil
	}
	var already []string
	for key, value := range given.set {
		if old, exists := have[key]; exists && old != value && (m.field == "labels" || key != rollout.ChangeCause) {
			already = append(already, fmt.Sprintf("'%s' already has a value (%s)", key, old))
		}
	}
	slices.Sort(already)
	if m.field == "annotations" && len(already) > 0 {
		return fmt.Errorf("--overwrite is false but found the following declared annotation(s): %s", strings.Join(already, "; "))
	}
	var failed []error
	for _, each := range already {
		failed = append(failed, errors.New(each+", and --overwrite is false"))
	}
	return errors.Join(failed...)
}

// printMarks prints an object's labels or annotations, one a line.
func (m *labelOptions) printMarks(object *unstructured.Unstructured) error {
	have, _, err := unstructured.NestedStringMap(object.Object, "metadata", m.field)
	if err != nil {
		return fmt.Errorf("reading the %s: %w", m.field, err)
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, err := fmt.Fprintf(printer.VisibleTo(m.Out), "%s=%s\n", key, have[key]); err != nil {
			return err
		}
	}
	return nil
}

func (m *labelOptions) patch(ctx context.Context, t lookup.Target, metadata map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	if body, err = m.WithCause(body); err != nil {
		return nil, err
	}
	return m.Patch(ctx, t, types.MergePatchType, body)
}
