package command

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// replacing is one `kctl replace`.
type replacing struct {
	sending
	selection
	force       bool
	grace       int64
	timeout     time.Duration
	cascade     string
	subresource string
	raw         raw
}

func newReplace(c *cli) *cobra.Command {
	r := &replacing{sending: sending{cli: c}, raw: raw{cli: c}}
	cmd := &cobra.Command{
		Use:     "replace -f FILENAME",
		Short:   "Replace a resource by file name or stdin",
		Example: "  kctl replace -f pod.yaml\n  kctl replace --force -f pod.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, "Unexpected args: %v", args)
			}
			if !r.fromFiles() {
				return usageError(cmd, "must specify one of -f and -k")
			}
			if r.raw.uri != "" {
				return r.raw.run(cmd, r.files)
			}
			return r.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	r.addFiles(fs, "to use to replace the resource.")
	r.raw.add(cmd, http.MethodPut, "PUT to")
	r.add(cmd)
	r.addValidation(cmd)
	r.addSaveConfig(fs)
	fs.BoolVar(&r.force, "force", false, "If true, delete the objects and create them anew.")
	fs.Int64Var(&r.grace, "grace-period", -1, "Period of time in seconds given to the resource to terminate gracefully. Ignored if negative.")
	fs.DurationVar(&r.timeout, "timeout", 0, "The length of time to wait before giving up on a delete")
	fs.StringVar(&r.cascade, "cascade", "background", `Must be "background", "orphan", or "foreground".`)
	fs.StringVar(&r.subresource, "subresource", "", "If specified, replace will operate on the subresource of the requested object.")
	return cmd
}

func (r *replacing) run(ctx context.Context) error {
	if r.force && r.dryRun != dryRunNone {
		return errors.New("--dry-run can not be used when --force is set")
	}
	targets, err := r.targets(ctx, &r.selection, nil, "")
	if len(targets) == 0 {
		return cmp.Or(err, errors.New("no objects passed to replace"))
	}
	failed := []error{err}
	if r.force {
		if err := r.remove(ctx, targets); err != nil {
			return err
		}
	}
	for _, t := range targets {
		object, operation := t.object, "replaced"
		if r.keepsConfig(t.object) {
			if err := rememberApplied(t.object); err != nil {
				return err
			}
		}
		switch {
		case r.dryRun == dryRunClient:
		case r.force:
			object, err = r.post(ctx, t.Resource.Resource, t.namespace, t.object)
		default:
			object, err = r.put(ctx, t)
		}
		if err != nil {
			failed = append(failed, inSource(err, "replacing", t.source))
			continue
		}
		failed = append(failed, r.print(&r.output, r.dryRun.mark(operation), object))
	}
	return errors.Join(failed...)
}

// keepsConfig tells whether the object is to remember its configuration: where
// that is asked for, or where the file has one, which would be that of old.
func (r *replacing) keepsConfig(object *unstructured.Unstructured) bool {
	_, has := object.GetAnnotations()[threeway.LastApplied]
	return r.saveConfig || has
}

// remove deletes the objects, and waits until they are gone.
func (r *replacing) remove(ctx context.Context, targets []target) error {
	d := &deleting{cli: r.cli, grace: r.grace, wait: true, timeout: r.timeout, cascade: r.cascade, dryRun: dryRunNone}
	var going []victim
	for _, t := range targets {
		uid, err := d.remove(ctx, t)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return inSource(err, "deleting", t.source)
		}
		going = append(going, victim{t, uid})
	}
	return d.await(ctx, going)
}

func (r *replacing) put(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	client, err := r.server()
	if err != nil {
		return nil, err
	}
	validation, err := r.fieldValidation()
	if err != nil {
		return nil, err
	}
	body, err := t.object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	options := []rest.Option{
		rest.Query("fieldManager", r.manager), rest.Query("fieldValidation", validation), rest.Query("dryRun", r.dryRun.query()),
	}
	if r.subresource != "" {
		options = append(options, rest.Sub(r.subresource))
	}
	var answer []byte
	if err := t.in(client).Update(ctx, t.name, body, &answer, options...); err != nil {
		return nil, err
	}
	return decode(answer)
}
