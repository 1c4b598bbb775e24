package runtimeclass

import (
	"testing"

	"go.uber.org/zap"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
)

func TestHandler(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(client, clock.RealClock{}, zap.NewNop())
	m.classes.Replace([]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Handler: "kata"}})
	if handler, err := m.Handler("vm"); err != nil || handler != "kata" {
		t.Errorf("handler %q, %v", handler, err)
	}
	if _, err := m.Handler("gone"); err == nil {
		t.Error("a class that is not there has a handler")
	}
}
