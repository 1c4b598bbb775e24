package handlers

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// includeObject is what the query's parameter of that name asks for.
func (c *call) includeObject() (metav1.IncludeObjectPolicy, error) {
	switch include := metav1.IncludeObjectPolicy(c.gin.Query("includeObject")); include {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
		return include, nil
	default:
		return "",
			apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: includeObject: Invalid value: %q: must be "+
				"'Metadata', 'Object', 'None', or empty", include))
	}
}

// table prints objects as rows. Each row includes its object's metadata, the
// whole object, or nothing, as includeObject says.
func (c *call) table(f form, items []registry.Encoded) (*metav1.Table, error) {
	include, err := c.includeObject()
	if err != nil {
		return nil, err
	}
	apiVersion := metav1.GroupName + "/" + f.group
	out := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: asTable, APIVersion: apiVersion},
		ColumnDefinitions: c.store.Info().Columns,
		Rows:              make([]metav1.TableRow, len(items)),
	}
	compare := c.store.Info().CompareRows
	var objects []core.Object // of the rows, if their order depends on them
	for i, item := range items {
		obj, err := c.store.Decode(item)
		if err != nil {
			return nil, err
		}
		row := metav1.TableRow{Cells: c.store.Row(obj)}
		switch include {
		case metav1.IncludeObject:
			row.Object = runtime.RawExtension{Raw: item.JSON}
		case metav1.IncludeMetadata:
			partial := meta.AsPartialObjectMetadata(obj)
			partial.TypeMeta = metav1.TypeMeta{Kind: asMetadata, APIVersion: apiVersion}
			row.Object = runtime.RawExtension{Object: partial}
		}
		out.Rows[i] = row
		if compare != nil {
			objects = append(objects, obj)
		}
	}
	if compare != nil {
		out.Rows = sortRows(out.Rows, objects, compare)
	}
	return out, nil
}

// sortRows returns the rows in the order of the objects that they are of.
func sortRows(rows []metav1.TableRow, objects []core.Object, compare func(a, b core.Object) int) []metav1.TableRow {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(objects[a], objects[b]) })
	sorted := make([]metav1.TableRow, len(rows))
	for i, at := range order {
		sorted[i] = rows[at]
	}
	return sorted
}
