package condition

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"kctl/apiserver/internal/celexpression"
)

// The names of the variables.
const (
	objectVar     = "object"
	oldObjectVar  = "oldObject"
	requestVar    = "request"
	paramsVar     = "params"
	namespaceVar  = "namespaceObject"
	authorizerVar = "authorizer"
	resourceVar   = "authorizer.requestResource"
	variablesVar  = "variables"
)

// Options say what a set of expressions may use besides the request.
type Options struct {
	Origin celexpression.Origin
	// Params: there is a variable "params".
	Params bool
	// Variables: there is a variable "variables", with the fields that Declare adds.
	Variables bool
	// Mutations: CompileMutation may be called.
	Mutations bool
	// Object is the type of object and oldObject, and ParamsType that of params, as far as
	// they are known; nil for any.
	Object, ParamsType *apiservercel.DeclType
}

// Compiler compiles the expressions of one object. It is not safe for
// concurrent use.
type Compiler struct {
	env       *cel.Env
	messages  *cel.Env
	mutations *cel.Env
	variables *apiservercel.DeclType
}

// NewCompiler returns a compiler.
func NewCompiler(o Options) (*Compiler, error) {
	c := &Compiler{}
	request, namespace := declareRequest(), declareNamespace()
	types := []*apiservercel.DeclType{request, namespace}
	options := []cel.EnvOption{
		cel.Variable(objectVar, celType(o.Object)),
		cel.Variable(oldObjectVar, celType(o.Object)),
		cel.Variable(requestVar, request.CelType()),
		cel.Variable(namespaceVar, namespace.CelType()),
	}
	if o.Params {
		options = append(options, cel.Variable(paramsVar, celType(o.ParamsType)))
	}
	for _, t := range []*apiservercel.DeclType{o.Object, o.ParamsType} {
		if t != nil {
			types = append(types, t)
		}
	}
	if o.Variables {
		c.variables = apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})
		types = append(types, c.variables)
		options = append(options, cel.Variable(variablesVar, c.variables.CelType()))
	}
	set, err := celexpression.Environment(types, options...)
	if err != nil {
		return nil, err
	}
	if c.messages, err = set.Env(o.Origin); err != nil {
		return nil, err
	}
	set, err = celexpression.Extend(set, nil, cel.Variable(authorizerVar, library.AuthorizerType),
		cel.Variable(resourceVar, library.ResourceCheckType))
	if err != nil {
		return nil, err
	}
	if c.env, err = set.Env(o.Origin); err != nil || !o.Mutations {
		return c, err
	}
	// Added last: declared types would hide what is resolved here.
	set, err = celexpression.Extend(set, nil, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), library.JSONPatch())
	if err != nil {
		return nil, err
	}
	c.mutations, err = set.Env(o.Origin)
	return c, err
}

func celType(t *apiservercel.DeclType) *cel.Type {
	if t == nil {
		return cel.DynType
	}
	return t.CelType()
}

// Compile compiles an expression whose value is of one of the types.
func (c *Compiler) Compile(text string, returns ...*cel.Type) (*celexpression.Program, *apiservercel.Error) {
	return celexpression.Compile(c.env, text, returns...)
}

// CompileMessage compiles an expression for the message of a refusal. It may
// not use the authorizer.
func (c *Compiler) CompileMessage(text string) (*celexpression.Program, *apiservercel.Error) {
	return celexpression.Compile(c.messages, text, cel.StringType)
}

// CompileMutation compiles an expression that can construct values of the types
// Object and JSONPatch.
func (c *Compiler) CompileMutation(text string, returns *cel.Type) (*celexpression.Program, *apiservercel.Error) {
	return celexpression.Compile(c.mutations, text, returns)
}

// The types of the results of mutations.
var (
	ObjectType  = cel.ObjectType(mutation.ObjectTypeName)
	PatchesType = cel.ListType(cel.ObjectType(mutation.JSONPatchTypeName))
)

// Declare compiles a variable, for use by expressions that are compiled after
// it. One that does not compile is declared nevertheless, with a dynamic type,
// so that its users don't fail, too; so is an object, as in upstream.
func (c *Compiler) Declare(name, text string) (*celexpression.Program, *apiservercel.Error) {
	program, err := c.Compile(text)
	t := cel.DynType
	if err == nil {
		t = program.Returns
	}
	c.variables.Fields[name] = apiservercel.NewDeclField(name, declareVariable(t), true, nil, nil)
	return program, err
}
