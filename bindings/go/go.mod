// The Go binding of libbaton. It has no dependencies but the library itself.
module baton/bindings/go

go 1.21
