package etcd

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// definitionsPath is in the keys of CustomResourceDefinitions.
const definitionsPath = "/apiextensions.k8s.io/customresourcedefinitions/"

// renewDefinition turns a CustomResourceDefinition of v1beta1 into one of v1. kube-apiserver stores all
// of them in v1beta1 to this day, in JSON, where schemas, subresources and columns that all versions
// have in common are beside the versions.
func renewDefinition(value []byte) (renewed []byte, former bool, err error) {
	var kind metav1.TypeMeta
	if json.Unmarshal(value, &kind) != nil || kind.GroupVersionKind().GroupVersion() != apiextensionsv1beta1.SchemeGroupVersion {
		return value, false, nil
	}
	stored, whole, definition := &apiextensionsv1beta1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{},
		&apiextensionsv1.CustomResourceDefinition{}
	if err = json.Unmarshal(value, stored); err == nil {
		apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(stored)
		err = errors.Join(
			apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(stored, whole, nil),
			apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(whole, definition, nil),
		)
	}
	if err != nil {
		return nil, true, fmt.Errorf("definition in v1beta1: %w", err)
	}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(kind.Kind))
	renewed, err = json.Marshal(definition)
	return renewed, true, err
}
