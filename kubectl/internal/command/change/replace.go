package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// replaceOptions has the flags of one `kctl replace`.
type replaceOptions struct {
	send.Sender
	lookup.Selection
	force       bool
	grace       int64
	timeout     time.Duration
	wait        bool
	cascade     send.Cascade
	subresource string
	raw         frame.Raw
}

func newReplace(c *frame.CLI) *cobra.Command {
	r := &replaceOptions{Sender: send.Sender{CLI: c}, raw: frame.Raw{CLI: c}}
	cmd := &cobra.Command{
		Use:     "replace -f FILENAME",
		Short:   "Replace a resource by file name or stdin",
		Example: "  kctl replace -f pod.yaml\n  kctl replace --force -f pod.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Start()
			if len(args) > 0 {
				return fmt.Errorf("unexpected args: %v", args)
			}
			if !r.FromFiles() {
				return lookup.ErrNoFile
			}
			if r.raw.URI != "" {
				return r.raw.Run(cmd, r.Files)
			}
			return r.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	r.AddFiles(fs, "to use to replace the resource.")
	r.raw.Add(cmd, http.MethodPut, "PUT to")
	r.Add(cmd, "kubectl-replace")
	r.AddValidation(cmd)
	r.Checked = r.FieldValidation
	r.AddSaveConfig(fs)
	fs.BoolVar(&r.force, "force", false, "If true, delete the objects and create them anew.")
	fs.Int64Var(&r.grace, "grace-period", -1, "Period of time in seconds given to the resource to terminate gracefully. Ignored if negative.")
	fs.DurationVar(&r.timeout, "timeout", 0,
		"The length of time to wait before giving up on a delete; zero is five minutes, or no limit with --wait.")
	fs.BoolVar(&r.wait, "wait", false, "If true, --force waits for finalizers as long as they take, and not only five minutes.")
	r.cascade.Add(fs, send.CascadeUsage)
	fs.StringVar(&r.subresource, "subresource", "", "If specified, replace will operate on the subresource of the requested object.")
	return cmd
}

func (r *replaceOptions) run(ctx context.Context) error {
	if r.grace >= 0 && !r.force {
		return errors.New("--grace-period must have --force specified")
	}
	if r.timeout != 0 && !r.force {
		return errors.New("--timeout must have --force specified")
	}
	if r.force && r.DryRun != frame.DryRunNone {
		return errors.New("--dry-run can not be used when --force is set")
	}
	if err := r.cascade.Settle(r.Err); err != nil {
		return err
	}
	targets, err := lookup.Targets(ctx, r.Sender.CLI, &r.Selection, nil, "")
	if len(targets) == 0 {
		return cmp.Or(err, errors.New("no objects passed to replace"))
	}
	failed := []error{err}
	if r.force {
		if err := r.deleteObjects(ctx, targets); err != nil {
			return err
		}
	}
	for _, t := range targets {
		object, operation := t.Object, "replaced"
		if r.keepsConfig(t.Object) {
			if err := threeway.Remember(t.Object); err != nil {
				return err
			}
		}
		switch {
		case r.DryRun == frame.DryRunClient:
		case r.force:
			object, err = r.Post(ctx, t.Resource.Resource, t.Namespace, t.Object)
		default:
			object, err = r.replaceObject(ctx, t)
		}
		if err != nil {
			failed = append(failed, frame.InSource(err, "replacing", t.Source))
			continue
		}
		failed = append(failed, r.Print(&r.Printing, r.DryRun.Mark(operation), object))
	}
	return errors.Join(failed...)
}

// keepsConfig tells whether to write the last-applied annotation: if that is
// asked for, or if the file has one, which would be outdated.
func (r *replaceOptions) keepsConfig(object *unstructured.Unstructured) bool {
	_, has := object.GetAnnotations()[threeway.LastApplied]
	return r.SaveConfig || has
}

// replaceWait is how long --force waits by default: nobody may be there to remove a finalizer.
const replaceWait = 5 * time.Minute

// deletion is how --force deletes: what is made anew must be gone before. As in kubectl, no
// grace at all is the shortest there is, and waits for the end like --wait.
func (r *replaceOptions) deletion() *deleteOptions {
	d := &deleteOptions{CLI: r.CLI, grace: r.grace, wait: true, timeout: r.timeout, cascade: r.cascade, dryRun: frame.DryRunNone}
	if d.grace == 0 {
		d.grace = 1
	}
	if d.timeout == 0 && !r.wait && r.grace != 0 {
		d.timeout = replaceWait
	}
	return d
}

// deleteObjects deletes the objects, and waits until they are gone.
func (r *replaceOptions) deleteObjects(ctx context.Context, targets []lookup.Target) error {
	d := r.deletion()
	var going []deletedObject
	for _, t := range targets {
		uid, err := d.deleteObject(ctx, t)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return frame.InSource(err, "deleting", t.Source)
		}
		going = append(going, deletedObject{t, uid})
	}
	return d.waitGone(ctx, going)
}

func (r *replaceOptions) replaceObject(ctx context.Context, t lookup.Target) (*unstructured.Unstructured, error) {
	client, err := r.Server()
	if err != nil {
		return nil, err
	}
	validation, err := r.FieldValidation()
	if err != nil {
		return nil, err
	}
	if t.Object.GetResourceVersion() == "" { // many types, custom ones too, are only updated from a version
		current := unstructured.Unstructured{}
		if err := t.In(client).Get(ctx, t.ObjectName, &current, rest.Sub(r.subresource)); err == nil { // or else the PUT tells why not
			t.Object.SetResourceVersion(current.GetResourceVersion())
		}
	}
	body, err := t.Object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var answer []byte
	if err := t.In(client).Update(ctx, t.ObjectName, body, &answer, rest.Sub(r.subresource),
		rest.Query("fieldManager", r.Manager), rest.Query("fieldValidation", validation), rest.Query("dryRun", r.DryRun.Query())); err != nil {
		return nil, err
	}
	return lookup.Decode(answer)
}
