package reviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/bounds"
	"kctl/apiserver/internal/discovery"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// maxBody bounds the body of a review: a token and some names.
const maxBody = 1 << 20

// Options are whom reviews ask.
type Options struct {
	Tokens     authn.TokenAuthenticator // nil where no kind of token is accepted
	Authorizer authz.Authorizer
	Rules      Rules
}

// Install serves the reviews and returns what discovery says of them.
func Install(router gin.IRoutes, o Options) []discovery.Resource {
	i := installer{router: router, codecs: serializer.NewCodecFactory(scheme.Scheme), protobuf: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)}
	a := access{o.Authorizer}
	tokens := o.Tokens
	if tokens == nil {
		tokens = authn.Tokens(nil)
	}
	authentication := func(name, kind string) core.Resource {
		return core.Resource{Group: authenticationv1.GroupName, Version: "v1", Name: name, Kind: kind}
	}
	authorization := func(name, kind string, namespaced bool) core.Resource {
		return core.Resource{Group: authorizationv1.GroupName, Version: "v1", Name: name, Kind: kind, Namespaced: namespaced}
	}
	add(&i, authentication("tokenreviews", "TokenReview"), tokenReview(tokens))
	add(&i, authentication("selfsubjectreviews", "SelfSubjectReview"), selfReview)
	add(&i, authorization("subjectaccessreviews", "SubjectAccessReview", false), a.subject)
	add(&i, authorization("selfsubjectaccessreviews", "SelfSubjectAccessReview", false), a.self)
	add(&i, authorization("selfsubjectrulesreviews", "SelfSubjectRulesReview", false), rulesReview(o.Rules))
	add(&i, authorization("localsubjectaccessreviews", "LocalSubjectAccessReview", true), a.local)
	return i.served
}

type installer struct {
	router   gin.IRoutes
	codecs   serializer.CodecFactory
	protobuf runtime.Serializer
	served   []discovery.Resource
}

// object is a pointer to a review's type.
type object[T any] interface {
	*T
	runtime.Object
}

// add serves one review, which answer fills in.
func add[T any, P object[T]](i *installer, resource core.Resource, answer func(ctx context.Context, namespace string, obj P) error) {
	path := resource.Path("", "")
	if resource.Namespaced {
		path = resource.Path(":namespace", "")
	}
	i.served = append(i.served, discovery.Resource{
		Info:  registry.Info{Resource: resource, Singular: strings.ToLower(resource.Kind)},
		Verbs: []string{"create"},
	})
	i.router.POST(path, func(c *gin.Context) {
		obj := P(new(T))
		media, err := handlers.Negotiate(c.Request)
		if err == nil {
			err = i.decode(c, resource, obj)
		}
		if err == nil {
			err = answer(c.Request.Context(), c.Param("namespace"), obj)
		}
		if err == nil {
			obj.GetObjectKind().SetGroupVersionKind(resource.GVK())
			err = i.encode(c, media, obj)
		}
		if err != nil {
			filters.WriteStatus(c.Writer, err)
		}
	})
}

func (i *installer) decode(c *gin.Context, resource core.Resource, into runtime.Object) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return apierrors.NewTimeoutError("the request's body did not arrive in time", 0)
	}
	if err != nil {
		return apierrors.NewBadRequest("read the request's body: " + err.Error())
	}
	gvk := resource.GVK()
	if err := cmp.Or(bounds.JSON(body), bounds.Protobuf(body, gvk, scheme.Scheme)); err != nil {
		return err
	}
	obj, got, err := i.codecs.UniversalDeserializer().Decode(body, &gvk, into)
	if err != nil {
		return apierrors.NewBadRequest("decode the request's body: " + err.Error())
	}
	if *got != gvk || obj != into {
		return apierrors.NewBadRequest(fmt.Sprintf("the request's body is a %s, a %s is wanted", got, gvk))
	}
	return nil
}

func (i *installer) encode(c *gin.Context, media string, obj runtime.Object) error {
	s := i.protobuf
	if media != runtime.ContentTypeProtobuf {
		info, _ := runtime.SerializerInfoForMediaType(i.codecs.SupportedMediaTypes(), media)
		s = info.Serializer
	}
	c.Header("Content-Type", media)
	c.Status(http.StatusCreated)
	return s.Encode(obj, c.Writer)
}
