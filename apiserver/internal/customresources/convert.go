package customresources

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/callout"
)

// converter turns objects of one version of a definition into those of another.
type converter struct {
	forms map[string]*form // by apiVersion
	name  string
	hook  *webhook // nil where only the version's name changes
	ctx   context.Context
}

func newConverter(d *definition, versions map[string]*form, services callout.Services) *converter {
	c := &converter{forms: map[string]*form{}, name: d.Name, ctx: context.Background()}
	for _, f := range versions {
		c.forms[f.apiVersion()] = f
	}
	if conversion := d.Spec.Conversion; conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter {
		c.hook = newWebhook(d, services)
	}
	return c
}

// formOf is the version that an object is in, nil where that is none.
func (c *converter) formOf(o *object) *form { return c.forms[o.GetAPIVersion()] }

func (c *converter) convert(ctx context.Context, to *form, o *object) (*object, error) {
	all, err := c.convertAll(ctx, to, []*object{o})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// convertAll returns objects in version to. What it is given is not changed.
func (c *converter) convertAll(ctx context.Context, to *form, objects []*object) ([]*object, error) {
	out := make([]*object, len(objects))
	var asked []*object
	var places []int
	for i, o := range objects {
		if o.GetAPIVersion() == to.apiVersion() {
			out[i] = o
			continue
		}
		if c.hook == nil {
			out[i] = o.DeepCopy()
			out[i].SetAPIVersion(to.apiVersion())
			to.normalize(out[i])
			continue
		}
		asked, places = append(asked, o), append(places, i)
	}
	if len(asked) == 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, conversionTime)
	defer cancel()
	converted, err := c.hook.convert(ctx, to.apiVersion(), asked)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: %w", asked[0].GroupVersionKind(), err))
	}
	for j, i := range places {
		if err := checkConverted(objects[i], converted[j], to); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: %w", objects[i].GroupVersionKind(), err))
		}
		to.normalize(converted[j])
		out[i] = converted[j]
	}
	return out, nil
}

// conversionTime is how long a conversion may take; upstream's.
const conversionTime = 30 * time.Second

// checkConverted refuses an answer that is another object than the one asked
// about. Of the metadata, labels and annotations are the webhook's to change.
func checkConverted(from, to *object, want *form) error {
	if to.GetAPIVersion() != want.apiVersion() || to.GetKind() != from.GetKind() {
		return fmt.Errorf("invalid groupVersion or kind in the answer: %s", to.GroupVersionKind())
	}
	before, ok := from.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("the object has no metadata")
	}
	after, ok := to.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("missing metadata in converted object")
	}
	for _, name := range []string{"name", "namespace", "uid"} {
		if fmt.Sprint(before[name]) != fmt.Sprint(after[name]) {
			return fmt.Errorf("must have the same %s: %v != %v", name, before[name], after[name])
		}
	}
	meta := make(map[string]any, len(before))
	for name, value := range before {
		meta[name] = value
	}
	for _, name := range []string{"labels", "annotations"} {
		delete(meta, name)
		if value, ok := after[name]; ok {
			meta[name] = value
		}
	}
	to.Object["metadata"] = meta
	return nil
}

func asStatus(err error, into *apierrors.APIStatus) bool { return errors.As(err, into) }
