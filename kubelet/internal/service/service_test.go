package service

import (
	"context"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
)

func TestLister(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLister(client, clock.RealClock{}, zap.NewNop())
	ended, end := context.WithCancel(t.Context())
	end()
	if err := l.WaitForSync(ended); err == nil {
		t.Error("services that were not read are taken for read")
	}
	read := make(chan struct{})
	close(read)
	l.synced = read
	if err := l.WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
	l.services.Replace([]*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "db"}},
	})
	if found := l.List("a"); len(found) != 1 || found[0].Name != "web" {
		t.Errorf("services of a: %v", found)
	}
}
