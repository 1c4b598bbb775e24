package environment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestExpand(t *testing.T) {
	e := &Environment{values: map[string]string{"A": "1", "B": "$(A)", "": "empty"}}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$$(A)": "$(A)", "$$$(A)": "$1", "$(C)": "$(C)",
		"$(B)": "$(A)", "$": "$", "$$": "$", "$(A": "$(A", "$A": "$A", "$(A)$(": "1$(", "a)b$(A))": "a)b1)",
	} {
		got, err := e.expand(in)
		if got != want || err != nil {
			t.Errorf("expand(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

// Forty lines of a manifest can say a petabyte.
func TestStringsAreBounded(t *testing.T) {
	doubling := []corev1.EnvVar{{Name: "E0", Value: strings.Repeat("x", 1000)}}
	for i := 1; i < 40; i++ {
		before := fmt.Sprintf("$(E%d)", i-1)
		doubling = append(doubling, corev1.EnvVar{Name: fmt.Sprintf("E%d", i), Value: before + before})
	}
	s := &Sources{}
	_, err := s.Build(t.Context(), Container{Pod: &core.Pod{}, Spec: &core.Container{Env: doubling}})
	if !errors.Is(err, errTooManyStrings) || !strings.Contains(err.Error(), "environment variable E12:") {
		t.Errorf("the environment has %v", err)
	}
	env, err := s.Build(t.Context(), Container{Pod: &core.Pod{}, Spec: &core.Container{Env: doubling[:12]}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.ExpandAll([]string{"$(E11)"}); err != nil {
		t.Error(err)
	}
	if _, err := env.ExpandAll(slices.Repeat([]string{"$(E11)"}, 4)); !errors.Is(err, errTooManyStrings) {
		t.Errorf("the arguments have %v", err)
	}
	large := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "large"}}}}
	s.Objects = objects{"A": make([]byte, maxStrings/2), "B": make([]byte, maxStrings/2), "C": []byte("x")}
	_, err = s.Build(t.Context(), Container{Pod: &core.Pod{}, Spec: &core.Container{EnvFrom: large}})
	if !errors.Is(err, errTooManyStrings) || !strings.Contains(err.Error(), "environment variable C:") {
		t.Errorf("the environment of a secret has %v", err)
	}
}

// objects are a namespace with one secret.
type objects map[string][]byte

func (o objects) Secret(context.Context, string, string) (*core.Secret, error) {
	return &core.Secret{Data: o}, nil
}

func (objects) ConfigMap(context.Context, string, string) (*core.ConfigMap, error) {
	return nil, errors.New("not here")
}

func TestServiceVariables(t *testing.T) {
	service := func(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
	}
	all := []*corev1.Service{
		service("default", "kubernetes", "10.0.0.1", corev1.ServicePort{Name: "https", Port: 443}),
		service("default", "other", "10.0.0.2", corev1.ServicePort{Port: 80}),
		service("ns", "my-db", "fd00::1", corev1.ServicePort{Name: "sql", Port: 5432}, corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP}),
		service("ns", "headless", "None", corev1.ServicePort{Port: 80}),
	}
	s := &Sources{Services: func(namespace string) []*corev1.Service {
		return slices.DeleteFunc(slices.Clone(all), func(s *corev1.Service) bool { return s.Namespace != namespace })
	}}
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	want := map[string]string{
		"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_SERVICE_PORT_HTTPS": "443",
		"KUBERNETES_PORT": "tcp://10.0.0.1:443", "KUBERNETES_PORT_443_TCP": "tcp://10.0.0.1:443", "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
		"KUBERNETES_PORT_443_TCP_PORT": "443", "KUBERNETES_PORT_443_TCP_ADDR": "10.0.0.1",
	}
	no := false
	pod.Spec.EnableServiceLinks = &no
	if got := s.serviceVariables(pod); !maps.Equal(got, want) {
		t.Errorf("without links: %v", got)
	}
	pod.Spec.EnableServiceLinks = nil
	maps.Copy(want, map[string]string{
		"MY_DB_SERVICE_HOST": "fd00::1", "MY_DB_SERVICE_PORT": "5432", "MY_DB_SERVICE_PORT_SQL": "5432", "MY_DB_PORT": "tcp://[fd00::1]:5432",
		"MY_DB_PORT_5432_TCP": "tcp://[fd00::1]:5432", "MY_DB_PORT_5432_TCP_PROTO": "tcp", "MY_DB_PORT_5432_TCP_PORT": "5432", "MY_DB_PORT_5432_TCP_ADDR": "fd00::1",
		"MY_DB_PORT_53_UDP": "udp://[fd00::1]:53", "MY_DB_PORT_53_UDP_PROTO": "udp", "MY_DB_PORT_53_UDP_PORT": "53", "MY_DB_PORT_53_UDP_ADDR": "fd00::1",
	})
	if got := s.serviceVariables(pod); !maps.Equal(got, want) {
		t.Errorf("with links: %v", got)
	}
}
