package informer

import (
	"context"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
)

func TestSurroundings(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	s := New(client, clock.RealClock{}, zap.NewNop())
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.WaitForServices(ended); err == nil {
		t.Error("services that were not read are taken for read")
	}
	read := make(chan struct{})
	close(read)
	s.servicesSynced = read
	if err := s.WaitForServices(t.Context()); err != nil {
		t.Error(err)
	}
	s.services.Replace([]*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "db"}},
	})
	if found := s.Services("a"); len(found) != 1 || found[0].Name != "web" {
		t.Errorf("services of a: %v", found)
	}
	s.classes.Replace([]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Handler: "kata"}})
	if handler, err := s.RuntimeHandler("vm"); err != nil || handler != "kata" {
		t.Errorf("handler %q, %v", handler, err)
	}
	if _, err := s.RuntimeHandler("gone"); err == nil {
		t.Error("a class that is not there has a handler")
	}
}
