package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// TestMergeSteps: the cost of a strategic merge patch depends on the lists that
// it merges into, not only on its own length, and not on lists that it
// replaces.
func TestMergeSteps(t *testing.T) {
	const long = 8000
	env := make([]corev1.EnvVar, long)
	names := make([]string, long)
	for i := range env {
		names[i] = fmt.Sprintf("n%d", i)
		env[i].Name = names[i]
	}
	pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Name: "long", Env: env, Args: names}, {Name: "short"}}}}
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	repeated := func(container string, times int) string {
		return `{"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat(container+",", times), ",") + `]}}`
	}
	for name, test := range map[string]struct {
		patch string
		ok    bool
	}{
		"an image beside":           {`{"spec":{"containers":[{"name":"long","image":"i"}]}}`, true},
		"one of many":               {`{"spec":{"containers":[{"name":"long","env":[{"name":"n1","value":"x"}]}]}}`, false},
		"one of none":               {`{"spec":{"containers":[{"name":"short","env":[{"name":"n1","value":"x"}]}]}}`, true},
		"many":                      {`{"spec":{"containers":[{"name":"short","env":` + string(list) + `}]}}`, false},
		"an order of many":          {`{"spec":{"containers":[{"name":"short","$setElementOrder/env":` + string(list) + `,"env":[]}]}}`, false},
		"an order of plain ones":    {`{"metadata":{"$setElementOrder/finalizers":` + string(text) + `,"finalizers":["a.b/c"]}}`, false},
		"many that replace as many": {`{"spec":{"containers":[{"name":"long","args":` + string(text) + `}]}}`, true},
		"what nobody knows":         {`{"spec":{"what":` + string(list) + `,"containers":{"a":{}}}}`, true},
		"one of many, often":        {repeated(`{"name":"short","env":[{"name":"n1"}],"volumeMounts":[]}`, 5000), true},
		"two of many, often":        {repeated(`{"name":"long","$setElementOrder/args":[],"$setElementOrder/env":[]}`, 2), false},
	} {
		patch, err := strategicPatcher([]byte(test.patch), &core.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = patch.apply(before)
		if refused := apierrors.IsRequestEntityTooLargeError(err); refused == test.ok || refused && !strings.Contains(err.Error(), "at most 50000000") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
