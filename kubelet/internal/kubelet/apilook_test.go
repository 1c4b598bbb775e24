package kubelet

import (
	"encoding/json"
	"time"

	"kctl/proto/core"
)

// object reads the object at path; ok is false if there is none.
func (a *testAPI) object(path string, into any) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	object, ok := a.objects[path]
	if ok {
		a.decode(object, into)
	}
	return ok
}

func (a *testAPI) decode(object map[string]any, into any) {
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// deleted waits until the pod's object is deleted, and returns its last state.
func (a *testAPI) deleted(name string) *core.Pod {
	a.t.Helper()
	a.wait(name+" gone", func() bool { return a.pod(name) == nil })
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := &core.Pod{}
	for _, c := range a.history {
		if c.kind == "DELETED" && c.path == core.Pods.Path("default", name) {
			a.decode(c.object, pod)
		}
	}
	return pod
}

func (a *testAPI) pod(name string) *core.Pod {
	pod := &core.Pod{}
	if !a.object(core.Pods.Path("default", name), pod) {
		return nil
	}
	return pod
}

// wait returns once condition holds; it checks at each change.
func (a *testAPI) wait(what string, condition func() bool) {
	a.t.Helper()
	deadline := time.After(patience)
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			a.t.Fatalf("waited in vain for %s", what)
		}
	}
}
