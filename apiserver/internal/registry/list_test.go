package registry_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/registry"
)

func TestListSelectsAndPages(t *testing.T) {
	b := start(t)
	for i := range 5 {
		s := service(fmt.Sprintf("s-%d", i))
		s.Labels = map[string]string{"odd": strconv.FormatBool(i%2 == 1)}
		b.create(s)
	}
	list, err := b.List(t.Context(), "ns", registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"odd": "true"})})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("labels: %d, %v", len(list.Items), err)
	}
	list, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.type=ClusterIP"), Limit: 3})
	if err != nil || len(list.Items) != 3 || list.Remaining != nil || list.Continue == "" {
		t.Errorf("fields: %d, %v", len(list.Items), err)
	}
	list, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.type=ClusterIP"), Limit: 3, Continue: list.Continue})
	if err != nil || len(list.Items) != 2 || list.Continue != "" {
		t.Errorf("next page: %d, %v", len(list.Items), err)
	}
	_, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.clusterIP=x")})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: spec.clusterIP") {
		t.Errorf("unknown field: %v", err)
	}
}
