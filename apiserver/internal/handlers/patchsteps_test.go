package handlers

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/jsonpatch"
)

// TestPatchSteps: the cost of a JSON patch depends on how often it moves list
// elements, and on the lists' lengths.
func TestPatchSteps(t *testing.T) {
	many := func(operation string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(operation+",", jsonpatch.MaxOperations), ",") + "]"
	}
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + "]"
	before := fmt.Appendf(nil, `{"long":%s,"map":{"a":1}}`, list)
	for name, test := range map[string]struct {
		patch string
		ok    bool
	}{
		"inserted":         {many(`{"op":"add","path":"/long/0","value":1}`), false},
		"from the end":     {many(`{"op":"add","path":"/long/-1","value":1}`), false},
		"taken out":        {many(`{"op":"remove","path":"/long/0"}`), false},
		"moved to a field": {many(`{"op":"move","from":"/long/0","path":"/map/a"}`), false},
		"copied":           {many(`{"op":"copy","from":"/map/a","path":"/long/0"}`), false},
		"into the patch's": {`[{"op":"add","path":"/new","value":` + list + `},` + strings.Replace(many(`{"op":"add","path":"/new/0","value":1}`), "[", "", 1),
			false},
		"appended":            {many(`{"op":"add","path":"/long/-","value":1}`), true},
		"replaced":            {many(`{"op":"replace","path":"/long/19999","value":1}`), true},
		"tested":              {many(`{"op":"test","path":"/long/0","value":1}`), true},
		"fields of an object": {many(`{"op":"add","path":"/map/b","value":1}`), true},
		"some":                {`[` + strings.TrimSuffix(strings.Repeat(`{"op":"add","path":"/long/0","value":1},`, 1000), ",") + `]`, true},
	} {
		patch, err := jsonPatcher([]byte(strings.Replace(test.patch, `{"op":"add","path":"/new/0","value":1},`, "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = patch.apply(before)
		if refused := apierrors.IsRequestEntityTooLargeError(err); refused == test.ok || refused && !strings.Contains(err.Error(), "at most 200000000") ||
			!refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	short := fmt.Appendf(nil, `{"list":[1],"data":"%s"}`, strings.Repeat("x", 1<<20))
	patch, err := jsonPatcher([]byte(many(`{"op":"add","path":"/list/0","value":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patch.apply(short); err != nil {
		t.Errorf("into a short list of a large object: %v", err)
	}
}
