package customresources

import (
	"context"
	"errors"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/derived"
	"kctl/apiserver/internal/registry"
)

// mostTogether and mostTogetherBytes bound what a webhook is asked to convert in one call, which has its time
// and the size of its answer for that: collections have no bound. One object is converted, whatever its size.
const (
	mostTogether      = 500
	mostTogetherBytes = 4 << 20
)

// mostShown bounds events that are converted together: it is half of what needs a place among those who convert
// (registry.Conversions), which a watch, that has no deadline, could wait for behind many others whose webhook hangs.
const mostShown = 512 << 10

// conversions are what webhooks have made of stored objects, by the version that they were made into. What is
// held of one keeps no definition that is gone.
type conversions = derived.Texts[weak.Pointer[compiledVersion]]

// mostConverted is how many bytes are held of conversions, whatever the number of definitions.
const mostConverted = 32 << 20

func newConversions() *conversions { return derived.New[weak.Pointer[compiledVersion]](mostConverted) }

// isFull reports whether as many objects, of that size, are enough for a call.
func isFull(objects, size int) bool { return objects >= mostTogether || size >= mostTogetherBytes }

// inChunks converts objects in place, some at a time.
func (v *convertedStore) inChunks(ctx context.Context, items []registry.Encoded,
	convert func(context.Context, []registry.Encoded) error) error {
	for len(items) > 0 {
		if ctx.Err() != nil {
			return requestEnded()
		}
		n, size := 0, 0
		for n < len(items) && !isFull(n, size) {
			size += len(items[n].JSON)
			n++
		}
		if err := convert(ctx, items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

func requestEnded() error {
	return apierrors.NewTimeoutError("the request ended before all its objects were converted", 0)
}

// errNotConverted is what those see who waited for a conversion that panicked.
var errNotConverted = errors.New("the object could not be converted")

// convertShared converts objects in place: what others have had converted, or are having converted, is
// not sent to the webhook again.
func (v *convertedStore) convertShared(ctx context.Context, items []registry.Encoded) error {
	found := make([]*derived.Text, len(items))
	var mine []registry.Encoded
	var settles []derived.Settle
	for i, item := range items {
		var settle derived.Settle
		if found[i], settle = v.converter.converted.Claim(item.JSON, weak.Make(v.version)); settle != nil {
			mine, settles = append(mine, item), append(settles, settle)
		}
	}
	if len(mine) > 0 {
		if err := v.convertFor(context.WithoutCancel(ctx), mine, settles); err != nil { // others may wait for it, too
			return err
		}
	}
	var again []int
	for i := range items {
		value, err := found[i].Wait(ctx)
		switch {
		case ctx.Err() != nil:
			return requestEnded()
		case err != nil: // others' calls also fail because of objects that are not asked for here, or may not be seen
			again = append(again, i)
		default:
			items[i].JSON = value
		}
	}
	if len(again) == 0 {
		return nil
	}
	return atPlaces(items, again, func(chosen []registry.Encoded) error { return v.convertTogether(ctx, chosen) })
}

// convertFor converts objects in place, and tells those who wait for them.
func (v *convertedStore) convertFor(ctx context.Context, items []registry.Encoded, settles []derived.Settle) error {
	err := errNotConverted
	defer func() {
		for i, settle := range settles {
			settle(items[i].JSON, err)
		}
	}()
	err = v.convertTogether(ctx, items)
	return err
}

// convertTogether converts objects in place, in one call of the webhook.
func (v *convertedStore) convertTogether(ctx context.Context, items []registry.Encoded) error {
	objects := make([]*object, len(items))
	var err error
	for i, item := range items {
		if objects[i], err = v.converter.decodeStored(item.JSON); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	converted, err := v.converter.convertAll(ctx, v.version, objects)
	if err != nil {
		return err
	}
	for i, o := range converted {
		if items[i], err = encoded(o, items[i].Revision); err != nil {
			return err
		}
	}
	return nil
}
