package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/auth/rbac/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/generate"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// reconcileOptions has the flags of `kctl auth reconcile`.
type reconcileOptions struct {
	send.Sender
	lookup.Selection
	removeOptions
}

func newReconcile(c *frame.CLI) *cobra.Command {
	r := &reconcileOptions{Sender: send.Sender{CLI: c, Manager: send.FieldManager}}
	cmd := &cobra.Command{
		Use:   "reconcile -f FILENAME",
		Short: "Reconcile rules for RBAC role, role binding, cluster role, and cluster role binding objects",
		Long: "Reconcile rules for RBAC role, role binding, cluster role, and cluster role binding objects.\n\nWhat is missing " +
			"is made, with its namespace; " +
			"rules and subjects that are missing are added. Objects of\nother kinds are passed over.",
		Example: "  kctl auth reconcile -f rights.yaml\n" +
			"  kctl auth reconcile -f rights.yaml --remove-extra-subjects --remove-extra-permissions --dry-run=client",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !r.FromFiles():
				return errors.New("must specify one of -f and -k")
			case len(args) > 0:
				return errors.New("no arguments are allowed")
			case r.DryRun == frame.DryRunServer:
				return errors.New("--dry-run=server for command reconcile is not supported yet")
			}
			return r.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	r.AddFiles(fs, "identifying the resource to reconcile.")
	r.Printing.AddChecked(cmd)
	r.DryRun.Add(cmd)
	fs.BoolVar(&r.permissions, "remove-extra-permissions", false, "If true, removes extra permissions added to roles")
	fs.BoolVar(&r.subjects, "remove-extra-subjects", false, "If true, removes extra subjects added to rolebindings")
	return cmd
}

func (r *reconcileOptions) run(ctx context.Context) error {
	targets, err := lookup.Targets(ctx, r.CLI, &r.Selection, nil, "")
	var missing *discover.NoKindError
	if errors.As(err, &missing) && missing.Kind.Group == core.Roles.Group {
		return fmt.Errorf("only rbac.authorization.k8s.io/v1 is supported: not %s of %s", missing.Kind.Kind, missing.Kind.Version)
	}
	failed := []error{err}
	for _, t := range targets {
		switch t.Resource.Resource {
		case core.Roles, core.ClusterRoles, core.RoleBindings, core.ClusterRoleBindings:
			failed = append(failed, r.reconcile(ctx, t))
		}
	}
	return errors.Join(failed...)
}

// reconcile turns the existing object into the wanted one, and says how.
func (r *reconcileOptions) reconcile(ctx context.Context, t lookup.Target) error {
	found, err := lookup.Fetch(ctx, r.CLI, t, &lookup.Selection{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var have *unstructured.Unstructured
	if len(found) > 0 {
		have = &found[0]
	}
	d, err := computeDifference(have, t.Object, r.removeOptions)
	if err != nil {
		return err
	}
	object := d.object
	if d.operation != "" && !d.protected && r.DryRun != frame.DryRunClient {
		if object, err = r.send(ctx, t, d); err != nil {
			return err
		}
	}
	typed, err := core.Scheme.New(t.GVK())
	if err != nil {
		return err
	}
	if err := lookup.Typed(object, typed); err != nil { // the order of fields is the type's, as kubectl's
		return err
	}
	if err := r.Print(&r.Printing, r.DryRun.Mark("reconciled"), typed); err != nil {
		return err
	}
	for _, line := range d.lines() {
		fmt.Fprintln(r.Err, printer.Visible(line))
	}
	return nil
}

func (r *reconcileOptions) send(ctx context.Context, t lookup.Target, d *reconcileResult) (*unstructured.Unstructured, error) {
	client, err := r.Server()
	if err != nil {
		return nil, err
	}
	switch d.operation {
	case operationUpdate:
		var answer []byte
		if err := t.In(client).Update(ctx, t.ObjectName, d.object.Object, &answer, rest.Query("fieldManager", r.Manager)); err != nil {
			return nil, err
		}
		return lookup.Decode(answer)
	case operationRecreate: // a binding's role can't be changed
		var gone []byte
		if err := t.In(client).Delete(ctx, t.ObjectName, &metav1.DeleteOptions{}, &gone); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	case operationCreate:
		if err := r.makeNamespace(ctx, t.Namespace); err != nil {
			return nil, err
		}
	}
	return r.Post(ctx, t.Resource.Resource, t.Namespace, d.object)
}

// makeNamespace makes the namespace that an object needs. If the user may not,
// the server's later error says what is missing.
func (r *reconcileOptions) makeNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	client, err := r.Server()
	if err != nil {
		return err
	}
	var answer []byte
	if err := client.Resource(core.Namespaces, "").Get(ctx, name, &answer); !apierrors.IsNotFound(err) {
		return nil
	}
	_, err = r.Post(ctx, core.Namespaces, "", generate.Namespace(name))
	if apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// The ways to turn the existing object into the wanted one.
const (
	operationCreate   = "create"
	operationUpdate   = "update"
	operationRecreate = "recreate"
)

// removeOptions says which unwanted parts are removed.
type removeOptions struct{ permissions, subjects bool }

// reconcileResult is the operation that an object needs; it is empty if there
// is none.
type reconcileResult struct {
	operation string
	protected bool // the object says that it must be left alone
	object    *unstructured.Unstructured

	missingRules, extraRules       []rbacv1.PolicyRule
	missingSubjects, extraSubjects []rbacv1.Subject
}

// autoUpdate is the annotation by which an object says that it must be left alone.
const autoUpdate = rbacv1.AutoUpdateAnnotationKey

// computeDifference returns the changes from have, which is nil if the object
// does not exist, to wanted. Labels and annotations are added, and never
// removed.
func computeDifference(have, wanted *unstructured.Unstructured, remove removeOptions) (*reconcileResult, error) {
	d := &reconcileResult{object: wanted}
	var is *unstructured.Unstructured
	if have == nil {
		d.operation = operationCreate
	} else {
		d.protected = have.GetAnnotations()[autoUpdate] == "false"
		is = have.DeepCopy()
		d.object = is
		labels, more := mergeMaps(is.GetLabels(), wanted.GetLabels())
		notes, also := mergeMaps(is.GetAnnotations(), wanted.GetAnnotations())
		if more {
			is.SetLabels(labels)
		}
		if also {
			is.SetAnnotations(notes)
		}
		if more || also {
			d.operation = operationUpdate
		}
	}
	if wanted.GetKind() == core.Roles.Kind || wanted.GetKind() == core.ClusterRoles.Kind {
		return d, d.compareRoles(is, wanted, remove.permissions)
	}
	return d, d.compareBindings(is, wanted, remove.subjects)
}

// mergeMaps merges another map into a map, and reports whether that changes
// anything.
func mergeMaps(have, more map[string]string) (map[string]string, bool) {
	all := map[string]string{}
	maps.Copy(all, have)
	changed := false
	for key, value := range more {
		old, ok := all[key]
		changed = changed || !ok || old != value
		all[key] = value
	}
	return all, changed
}

// compareRoles compares rules. A Role is read as a ClusterRole, which has all
// that it has.
func (d *reconcileResult) compareRoles(is, wanted *unstructured.Unstructured, remove bool) error {
	want, have := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}
	if err := lookup.Typed(wanted, want); err != nil {
		return err
	}
	if is == nil {
		d.missingRules = want.Rules
		return nil
	}
	if err := lookup.Typed(is, have); err != nil {
		return err
	}
	selectors, changed := mergeAggregation(have.AggregationRule, want.AggregationRule, remove)
	rules := have.Rules
	if want.AggregationRule == nil { // an aggregated role's rules are not its own
		_, d.missingRules = validation.Covers(have.Rules, want.Rules)
		rules = slices.Concat(rules, d.missingRules)
		if remove {
			_, d.extraRules = validation.Covers(want.Rules, have.Rules)
		}
		if len(d.extraRules) > 0 {
			rules = want.Rules
		}
	}
	if changed || len(d.missingRules)+len(d.extraRules) > 0 {
		d.operation = operationUpdate
	}
	return errors.Join(setList(is, changed, selectors, "aggregationRule", "clusterRoleSelectors"),
		setList(is, len(d.missingRules)+len(d.extraRules) > 0, rules, "rules"))
}

func (d *reconcileResult) compareBindings(is, wanted *unstructured.Unstructured, remove bool) error {
	want, have := &rbacv1.RoleBinding{}, &rbacv1.RoleBinding{}
	if err := lookup.Typed(wanted, want); err != nil {
		return err
	}
	if is == nil {
		d.missingSubjects = want.Subjects
		return nil
	}
	if err := lookup.Typed(is, have); err != nil {
		return err
	}
	if have.RoleRef != want.RoleRef {
		d.operation, d.object = operationRecreate, wanted
		return nil
	}
	d.missingSubjects = subtract(want.Subjects, have.Subjects)
	subjects := slices.Concat(have.Subjects, d.missingSubjects)
	if remove {
		d.extraSubjects = subtract(have.Subjects, want.Subjects)
	}
	if len(d.extraSubjects) > 0 {
		subjects = want.Subjects
	}
	changed := len(d.missingSubjects)+len(d.extraSubjects) > 0
	if changed {
		d.operation = operationUpdate
	}
	return setList(is, changed, subjects, "subjects")
}

// lines describe it in kubectl's words.
func (d *reconcileResult) lines() []string {
	if d.operation == "" {
		return nil
	}
	head := "\treconciliation required " + d.operation
	if d.protected {
		head += ", but object opted out (" + autoUpdate + ": false)"
	}
	lines := []string{head}
	lines = appendList(lines, "missing subjects added", d.missingSubjects)
	lines = appendList(lines, "extra subjects removed", d.extraSubjects)
	lines = appendList(lines, "missing rules added", d.missingRules)
	return appendList(lines, "extra rules removed", d.extraRules)
}

func appendList[T any](lines []string, caption string, all []T) []string {
	if len(all) > 0 {
		lines = append(lines, "\t"+caption+":")
	}
	for _, each := range all {
		lines = append(lines, fmt.Sprintf("\t\t%+v", each))
	}
	return lines
}
