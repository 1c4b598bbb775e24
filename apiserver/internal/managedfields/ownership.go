package managedfields

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxUpdaters is how many managers with the operation Update are kept apart;
// upstream's. With more, the library merges the oldest entries.
const maxUpdaters = 10

const fieldsType = "FieldsV1"

// ownership is one manager's claim to the fields that its update changed.
type ownership struct {
	version string
	by      Manager
	now     func() time.Time
}

// update returns the managedFields after the update: its manager owns what
// changed, and removed fields have no owner any longer. entries are not
// changed; scratch is overwritten.
func (o *ownership) update(entries []metav1.ManagedFieldsEntry, changed, removed *fieldSet,
	scratch *document) ([]metav1.ManagedFieldsEntry, error) {
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries)+1)
	var own *metav1.ManagedFieldsEntry
	updaters := 0
	for _, entry := range entries {
		has, err := o.fieldsOf(&entry, scratch)
		if err != nil {
			return nil, err
		}
		if o.isOwn(entry) {
			if own != nil {
				return nil, errUnusual
			}
			has = has.without(removed).union(changed)
			own = o.entry(has)
			if changed.empty() {
				own.Time = entry.Time
			}
			continue
		}
		if has.meets(changed) || has.meets(removed) {
			if has = has.without(changed).without(removed); has.empty() {
				continue
			}
			entry.FieldsV1 = &metav1.FieldsV1{Raw: has.json()}
		}
		if entry.Operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
		out = append(out, entry)
	}
	if own == nil && !changed.empty() {
		own = o.entry(changed)
	}
	if own != nil && own.FieldsV1 != nil {
		out = append(out, *own)
		updaters++
	}
	if updaters > maxUpdaters {
		return nil, errUnusual
	}
	if len(out) == 0 { // no managedFields, and not an empty list of them
		return nil, nil
	}
	slices.SortStableFunc(out, inOrder)
	return out, nil
}

// fieldsOf are the fields in an entry, if it is an ordinary one.
func (o *ownership) fieldsOf(entry *metav1.ManagedFieldsEntry, scratch *document) (*fieldSet, error) {
	if entry.FieldsType != fieldsType || entry.FieldsV1 == nil || entry.APIVersion != o.version {
		return nil, errUnusual
	}
	return parseFields(scratch, entry.FieldsV1.Raw)
}

func (o *ownership) isOwn(entry metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Manager == o.by.Name && entry.Subresource == o.by.Subresource
}

// entry is the manager's own; without FieldsV1 if nothing is owned.
func (o *ownership) entry(has *fieldSet) *metav1.ManagedFieldsEntry {
	entry := &metav1.ManagedFieldsEntry{
		Manager: o.by.Name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: o.version,
		Time: &metav1.Time{Time: o.now().UTC().Truncate(time.Second)}, FieldsType: fieldsType, Subresource: o.by.Subresource,
	}
	if !has.empty() {
		entry.FieldsV1 = &metav1.FieldsV1{Raw: has.json()}
	}
	return entry
}

// inOrder is the order of the entries: applies first, then by time.
func inOrder(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation),
		compareTimes(a.Time, b.Time),
		cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Subresource, b.Subresource),
	)
}

func compareTimes(a, b *metav1.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return a.Time.Compare(b.Time)
}
