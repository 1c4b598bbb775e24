package customresources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/customresources/structural"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/status"
)

// converter converts objects between versions of a definition.
type converter struct {
	versions map[string]*compiledVersion // by apiVersion
	webhook  *webhook                    // nil if only the version's name changes
	ctx      context.Context
	// bound is the server's, but a webhook has one of its own: who waits for a slow one
	// keeps no place from the lists of others.
	bound registry.Conversions
	// converted is what webhooks have made of stored objects, this one and those of other definitions.
	converted *conversions
}

func newConverter(d *definition, versions map[string]*compiledVersion, o Options) *converter {
	c := &converter{
		versions: map[string]*compiledVersion{}, ctx: context.Background(), bound: o.Registry.Conversions, converted: o.converted,
	}
	for _, f := range versions {
		c.versions[f.apiVersion()] = f
	}
	if conversion := d.Spec.Conversion; conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter {
		c.webhook, c.bound = newWebhook(d, o.Webhooks), registry.NewConversions()
	}
	return c
}

// versionOf is the version of an object, nil if it is not the definition's.
func (c *converter) versionOf(o *object) *compiledVersion { return c.versions[o.GetAPIVersion()] }

// versionIn is the version of an encoded object, nil if that has to be decoded to find it.
func (c *converter) versionIn(value []byte) *compiledVersion {
	for _, f := range c.versions {
		if bytes.HasPrefix(value, []byte(f.prefix)) {
			return f
		}
	}
	return nil
}

func (c *converter) convert(ctx context.Context, to *compiledVersion, o *object) (*object, error) {
	all, err := c.convertAll(ctx, to, []*object{o})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// convertAll returns objects in version to, without changing its input. It adds no
// defaults: those of a version apply to what is sent and stored in it (Kubernetes
// docs, "Defaulting").
func (c *converter) convertAll(ctx context.Context, to *compiledVersion, objects []*object) ([]*object, error) {
	return c.convertTidied(ctx, to, objects, to.tidy)
}

// convertTidied is convertAll, where tidy drops what is left in an object that a webhook converted.
func (c *converter) convertTidied(ctx context.Context, to *compiledVersion, objects []*object, tidy func(*object)) ([]*object, error) {
	out := make([]*object, len(objects))
	var asked []*object
	var places []int
	for i, o := range objects {
		if o.GetAPIVersion() == to.apiVersion() {
			out[i] = o
			continue
		}
		if c.webhook == nil || isEmpty(o) {
			out[i] = o.DeepCopy()
			to.rename(out[i])
			continue
		}
		asked, places = append(asked, o), append(places, i)
	}
	if len(asked) == 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, conversionTime)
	defer cancel()
	converted, err := c.webhook.convert(ctx, to.apiVersion(), asked)
	if err != nil {
		return nil, webhookError(asked[0], err)
	}
	for j, i := range places {
		if err := checkConverted(j, objects[i], converted[j], to.apiVersion()); err != nil {
			return nil, webhookError(objects[i], fmt.Errorf("returned %w", err))
		}
		tidy(converted[j])
		out[i] = converted[j]
	}
	return out, nil
}

// webhookError says why a webhook's answer about an object is not taken. The text has parts of the
// answer, which may have many megabytes.
func webhookError(about *object, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s %s", about.GroupVersionKind(), status.Shorten(err.Error())))
}

// isEmpty reports whether an object has nothing but its kind: what a new one replaces, for
// managedFields. Webhooks expect an object with a name.
func isEmpty(o *object) bool {
	for name, value := range o.Object {
		content, isObject := value.(map[string]any)
		if name != "apiVersion" && name != "kind" && (name != "metadata" || !isObject || len(content) > 0) {
			return false
		}
	}
	return true
}

// rename makes an object one of version f, where only the version's name differs.
func (f *compiledVersion) rename(o *object) {
	o.SetAPIVersion(f.apiVersion())
	f.tidy(o)
}

// tidy drops what a conversion has left in an object and f does not have.
func (f *compiledVersion) tidy(o *object) {
	f.prune(o.Object, false)
	f.dropNulls(o)
}

// dropNulls leaves out what is null where a version has no nulls.
func (f *compiledVersion) dropNulls(o *object) {
	if !f.preserves {
		f.schema.DropNulls(o.Object)
	}
}

// renameEncoded is rename for an object that is encoded in version from, without decoding
// it; ok is false if more than the version's name may change.
func (f *compiledVersion) renameEncoded(value []byte, from *compiledVersion) (renamed []byte, ok bool) {
	if !from.isNormal(value) || !f.preserves && !f.schema.Settled(value, structural.Changes{Prune: true, Nulls: true}) {
		return nil, false
	}
	rest := value[len(from.prefix):]
	renamed = make([]byte, 0, len(f.prefix)+len(rest))
	return append(append(renamed, f.prefix...), rest...), true
}

// conversionTime is how long a conversion may take; upstream's.
const conversionTime = 30 * time.Second

// checkConverted refuses the i-th object of a webhook's answer if it is not the
// one that was sent. In the metadata, a webhook may change labels and annotations
// only. The words are upstream's.
func checkConverted(i int, from, to *object, want string) error {
	if got := to.GetAPIVersion(); got != want {
		return fmt.Errorf("invalid object at index %d: invalid groupVersion (expected %s, received %s)", i, want, got)
	}
	if got := to.GetKind(); got != from.GetKind() {
		return fmt.Errorf("invalid object at index %d: invalid kind (expected %s, received %s)", i, from.GetKind(), got)
	}
	before, ok := from.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("invalid metadata: the object has none")
	}
	after, _ := to.Object["metadata"].(map[string]any)
	for _, field := range []struct{ name, words string }{{"name", "name"}, {"namespace", "namespace"}, {"uid", "UID"}} {
		if was, is := quoteValue(before[field.name]), quoteValue(after[field.name]); was != is {
			return fmt.Errorf("invalid object: must have the same %s: %s != %s", field.words, was, is)
		}
	}
	meta := maps.Clone(before)
	for _, name := range []string{"labels", "annotations"} {
		if err := takeTexts(meta, after, name); err != nil {
			return fmt.Errorf("invalid metadata: %w", err)
		}
	}
	to.Object["metadata"] = meta
	errs := metavalidation.ValidateLabels(to.GetLabels(), field.NewPath("metadata", "labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(to.GetAnnotations(), field.NewPath("metadata", "annotations"))...)
	if len(errs) > 0 {
		return fmt.Errorf("invalid metadata: %w", errs.ToAggregate())
	}
	return nil
}

// takeTexts gives meta the labels or the annotations of the metadata that a webhook
// returned: texts by name, or none.
func takeTexts(meta, returned map[string]any, name string) error {
	delete(meta, name)
	value := returned[name]
	if value == nil {
		return nil
	}
	texts, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
	}
	for key, text := range texts {
		if _, ok := text.(string); !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, text)
		}
	}
	if len(texts) > 0 { // metadata without content is left out
		meta[name] = texts
	}
	return nil
}

// quoteValue is a value as messages show it; empty if there is none.
func quoteValue(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
