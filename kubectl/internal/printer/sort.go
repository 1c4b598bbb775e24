package printer

import (
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SortItems sorts a list by a field, given as a JSONPath.
func SortItems(list *unstructured.UnstructuredList, path string) error {
	order, found, err := sortedOrder(list.Items, path)
	if err != nil {
		return err
	}
	if !found && len(list.Items) > 0 {
		return fmt.Errorf("couldn't find any field with path %q in the list of objects", path)
	}
	items := make([]unstructured.Unstructured, len(order))
	for to, from := range order {
		items[to] = list.Items[from]
	}
	list.Items = items
	return nil
}

// sortedOrder gives the original index of each sorted item, and whether any has
// the field. Items without it come first.
func sortedOrder(items []unstructured.Unstructured, path string) (order []int, found bool, err error) {
	parsed, err := RelaxedPath(path)
	if err != nil {
		return nil, false, fmt.Errorf("--sort-by: %w", err)
	}
	keys := make([]any, len(items))
	order = make([]int, len(items))
	for i := range items {
		order[i] = i
		results, err := parsed.FindResults(items[i].Object)
		if err != nil {
			return nil, false, fmt.Errorf("--sort-by: %w", err)
		}
		if len(results) > 0 && len(results[0]) > 0 {
			keys[i], found = results[0][0].Interface(), true
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return less(keys[order[a]], keys[order[b]]) })
	return order, found, nil
}

// less orders numbers and quantities by size, everything else as text.
func less(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b != nil
	}
	x, xIsNumber := number(a)
	y, yIsNumber := number(b)
	if xIsNumber && yIsNumber {
		return x < y
	}
	s, t := fmt.Sprint(a), fmt.Sprint(b)
	if q, err := resource.ParseQuantity(s); err == nil {
		if r, err := resource.ParseQuantity(t); err == nil {
			return q.Cmp(r) < 0
		}
	}
	return s < t
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	}
	return 0, false
}
