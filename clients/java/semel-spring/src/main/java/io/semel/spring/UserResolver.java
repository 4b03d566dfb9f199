package io.semel.spring;

/** Who calls: a bean of this type makes keys of type PARAM those of one user. */
public interface UserResolver {
  /** Null or empty: nobody; the call is refused, unless semel.param.anonymous is set. */
  String user();
}
