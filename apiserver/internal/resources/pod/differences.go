package pod

import (
	"encoding/json"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/api/equality"
)

// maxDifferences bounds how many an error message lists.
const maxDifferences = 10

// differences names the fields in which two values of one type differ, as
// paths in their JSON form.
func differences(root string, was, now any) []string {
	var found []string
	compare(root, generic(was), generic(now), &found)
	if len(found) > maxDifferences {
		more := len(found) - maxDifferences
		found = append(found[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return found
}

func generic(v any) any {
	var out any
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil { // API types always encode
		return fmt.Sprint(v)
	}
	return out
}

func compare(path string, was, now any, found *[]string) {
	switch w := was.(type) {
	case map[string]any:
		n, ok := now.(map[string]any)
		if !ok {
			break
		}
		keys := make([]string, 0, len(w)+len(n))
		for key := range w {
			keys = append(keys, key)
		}
		for key := range n {
			if _, both := w[key]; !both {
				keys = append(keys, key)
			}
		}
		sort.Strings(keys)
		for _, key := range keys {
			compare(path+"."+key, w[key], n[key], found)
		}
		return
	case []any:
		n, ok := now.([]any)
		if !ok || len(n) != len(w) {
			break
		}
		for i := range w {
			compare(fmt.Sprintf("%s[%d]", path, i), w[i], n[i], found)
		}
		return
	}
	if !equality.Semantic.DeepEqual(was, now) {
		*found = append(*found, path)
	}
}
